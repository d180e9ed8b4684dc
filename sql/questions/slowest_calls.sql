-- Which requests to the model took longest?
-- Over all tries, the selector's requests and failed ones too; each retry is a request of its own.
select
    run.batch_id as batch,
    run.team_id as team,
    run.task_id || '#' || run.attempt as cell,
    call.role,
    call.kind,
    coalesce(call.error_class, call.outcome) as outcome,
    call.latency_ms / 1000::double precision as seconds,
    call.prompt_tokens as tokens_in,
    call.completion_tokens as tokens_out,
    call.call_no,
    call.run_id
from runs as run
join batches as batch using (batch_id, team_id)
join model_calls as call using (run_id)
where (cast(:batch_id as text) is null or run.batch_id = cast(:batch_id as text))
    and (cast(:team_id as text) is null or run.team_id = cast(:team_id as text))
    and (cast(:suite as text) is null or batch.suite = cast(:suite as text))
order by call.latency_ms desc, call.run_id, call.call_no
limit :rows
