-- The shipped ledger: what each version of the team was made to find out. Verdicts are not written here, v_experiments
-- computes them once a comparison has filled in the figures.

insert into experiments (experiment_id, hypothesis, layer, team_before, team_after) values
    (
        'EXP-40',
        'Every read of an attachment fails because the path is guessed: a line with its absolute path in the run '
        'message lets the file be read.',
        'input', 'v1-baseline', 'v2-attach-path'
    ),
    (
        'EXP-41',
        'Answers come out as the placeholder <answer> itself: format examples with real values, and a critic that '
        'rejects a leftover placeholder, put the value there.',
        'prompt', 'v2-attach-path', 'v3-prompt-fix'
    ),
    (
        'EXP-46',
        'format_invalid rose to 0.21 because the FINAL ANSWER label is dropped on one-word answers: a rule that even '
        'one word needs the line, and a critic that rejects its absence, bring it back.',
        'prompt', 'v3-prompt-fix', 'v4-prompt-fix'
    ),
    (
        'EXP-42',
        'Binary files break the text reader, and arithmetic alone cannot parse files: a reader for each kind of file '
        'and a Python tool solve the tasks that hang on them.',
        'tools', 'v4-prompt-fix', 'v5-multitool'
    ),
    (
        'EXP-47',
        'Runs end before anyone has checked the answer: a selector that lets a run end only after the critic has '
        'approved turns wrong answers into corrected ones.',
        'routing', 'v1-baseline', 'v6-verify-gate'
    );
