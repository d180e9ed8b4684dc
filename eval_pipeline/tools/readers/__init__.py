"""One module per file format: each turns a file into lines of plain text that a model can read.

A reader is a generator of lines, so that what nobody will see is never produced. It runs in a child process
that :mod:`eval_pipeline.tools.readers.client` asks for and :mod:`eval_pipeline.tools.readers.server` forks;
how much of its text is shown is decided in :mod:`eval_pipeline.tools.readers.collect`.
"""
