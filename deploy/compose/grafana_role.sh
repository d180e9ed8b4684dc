#!/bin/sh
# Makes the role that Grafana reads with, or renews its rights and its password. Takes PG*, GRAFANA_PG_PASSWORD and, as
# an argument, the place of reader_role.sql.
set -eu
role=${1:-/reader_role.sql}
psql --no-psqlrc --quiet --set ON_ERROR_STOP=1 --file "$role"
# read from the environment by psql itself: it would be seen among the processes as an argument
psql --no-psqlrc --quiet --set ON_ERROR_STOP=1 <<'SQL'
\getenv password GRAFANA_PG_PASSWORD
alter role grafana_reader password :'password';
SQL
