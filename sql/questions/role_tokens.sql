-- How many tokens does each role use, under which team?
-- Over all requests of all tries; a request whose endpoint reports no usage counts as a request only.
select
    team_id as team,
    role,
    sum(requests)::bigint as requests,
    sum(tokens_in)::bigint as tokens_in,
    sum(tokens_out)::bigint as tokens_out,
    sum(tokens)::double precision / nullif(sum(sum(tokens)) over (partition by team_id), 0) as team_share,
    sum(tokens)::double precision / count(*) as tokens_per_run
from (
    select
        run.team_id,
        call.run_id,
        call.role,
        count(*) as requests,
        sum(call.prompt_tokens) as tokens_in,
        sum(call.completion_tokens) as tokens_out,
        coalesce(sum(call.prompt_tokens), 0) + coalesce(sum(call.completion_tokens), 0) as tokens
    from runs as run
    join batches as batch using (batch_id, team_id)
    join model_calls as call using (run_id)
    where (cast(:batch_id as text) is null or run.batch_id = cast(:batch_id as text))
        and (cast(:team_id as text) is null or run.team_id = cast(:team_id as text))
        and (cast(:suite as text) is null or batch.suite = cast(:suite as text))
    group by run.team_id, call.run_id, call.role
) as asked
group by team_id, role
order by team, team_share desc nulls last, role
limit :rows
