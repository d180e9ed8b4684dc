-- The months, such as 2026_11, that have a partition of events and of model calls.
select substring(child.relname from '_([0-9]{4}_[0-9]{2})$') as month
from pg_inherits
join pg_class as child on child.oid = inhrelid
where inhparent in (to_regclass('events'), to_regclass('model_calls')) and child.relname ~ '_[0-9]{4}_[0-9]{2}$'
group by month
having count(*) = 2
order by month
