coalesce(to_char(started AT TIME ZONE interval '0', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') || ' ', '')
        || left(timeline, -16)