-- The batches that the statements after this one are about.
create temporary table planting on commit drop as
select * from unnest(cast(:batch_ids as text[]), cast(:team_ids as text[])) as named (batch_id, team_id)
