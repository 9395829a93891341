event AS (
    INSERT INTO {schema}.events (
        token_group, at, domain, version, act, client, until, once_key, fence, act_by, host,
        reason
    )
    SELECT
        $token_group, now, $act_domain, $act_version, $act, $act_client, $act_until,
        $act_once_key, $act_fence, $act_by, $act_host, $act_reason
    FROM swapped
)
