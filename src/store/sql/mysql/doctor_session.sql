-- The session's number on the server. A proxy answers CONNECTION_ID() alone by itself, so there is a sum.
SELECT CONNECTION_ID() + 0 AS session
