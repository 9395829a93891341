-- Why a swap was not carried out.
SELECT now, started, timeline, version
FROM ({clock}) AS clock LEFT JOIN {schema}.tokens ON token_group = $1
