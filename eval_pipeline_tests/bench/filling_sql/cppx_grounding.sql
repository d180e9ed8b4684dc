insert into cppx_grounding (
    run_id, scorer_version, facts, facts_found, fact_ratio, forbidden_found, identifiers, identifiers_valid,
    identifier_precision, locations, locations_valid, location_precision
)
select run_id, scorer_version, 4, 3, 0.75, 0, 5, 4, 0.8, 2, 1, 0.5
from planting
join batches using (batch_id, team_id)
join runs using (batch_id, team_id)
where status = 'completed' and benchmark = 'cppx'
