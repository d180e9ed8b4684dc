"""The only package that imports ``autogen_*``; it is written for version 0.7.5, exactly.

It builds a team out of a :class:`~eval_pipeline.teams.spec.TeamSpec`, wraps the model and the tools so that neither
can lie to us or hang the team, runs it under a deadline, and hands everything on in the types of
:mod:`eval_pipeline.tracing.items`. Nothing here touches the database or Dagster.
"""
