insert into research_grounding (
    run_id, scorer_version, evidence, claims, claims_cited, claims_supported, citations, citations_valid,
    citation_precision, citation_recall, grounding_f1
)
select run_id, scorer_version, 6, 4, 3, 2, 5, 4, 0.8, 0.5, 0.6
from planting
join batches using (batch_id, team_id)
join runs using (batch_id, team_id)
where status = 'completed' and benchmark = 'research'
