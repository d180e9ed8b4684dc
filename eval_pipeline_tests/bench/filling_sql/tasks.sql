insert into tasks (task_id, content_hash, benchmark, level, question, gold)
select
    'bench-' || to_char(number, 'FM0000'),
    'h1',
    'gaia',
    1 + number % 3,
    'How many units were sold in week ' || number || ', returns left out? ' || repeat('Mind the footnotes. ', number % 9),
    number * 37 || ' units'
from generate_series(1, :tasks) as number
on conflict do nothing
