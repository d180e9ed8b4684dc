-- What some of the tools returned is longer than a row of a trace keeps.
insert into texts (sha256, body, length)
select encode(sha256(convert_to(body, 'UTF8')), 'hex'), body, char_length(body)
from (
    select
        'Sheet ' || number || chr(10)
        || repeat('2026-01-02; 매출 ' || number || '; 17.50; drinks' || chr(10), 150) as body
    from generate_series(0, 49) as number
) as sheet
on conflict do nothing
