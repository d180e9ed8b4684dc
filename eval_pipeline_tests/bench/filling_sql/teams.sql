insert into teams (
    team_id, parent_id, layer, changes, answers, prompt_bundle_hash, contract_hash, spec
)
values (
    :team_id, :parent_id, 'prompt', '["prompts"]', 'line', repeat('p', 64), repeat('c', 64),
    '{"prompts": {"planner": "Plan."}, "tools": ["python_calc"]}'
)
on conflict do nothing
