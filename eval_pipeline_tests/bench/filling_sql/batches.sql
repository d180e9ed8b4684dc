insert into batches (
    batch_id, team_id, suite, benchmark, suite_hash, contract, contract_hash, provider, model, scripted, created_at
)
values (
    :batch_id, :team_id, :suite, :benchmark, repeat('s', 64),
    '{"suite_hash": "s", "model": "made-up", "max_messages": 30}',
    repeat('k', 64), 'openai', 'made-up', false,
    timestamptz '2026-01-01' + :number * interval '1 day'
)
