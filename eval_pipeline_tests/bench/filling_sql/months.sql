-- The partitions that the traces of these batches belong into.
select make_trace_month(month::date)
from generate_series(
    date_trunc('month', date '2026-01-01' + cast(:begun as integer)),
    timestamp '2026-01-01' + (cast(:begun as integer) + cast(:count as integer)) * interval '1 day',
    interval '1 month'
) as month
