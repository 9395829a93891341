-- $1: the resource; $2: the fence. The mark never falls.
INSERT INTO tokenrun_resources (resource, fence, advanced_at) VALUES ($1, $2, SYSDATE(6))
ON DUPLICATE KEY UPDATE
    advanced_at = IF(fence <= $2, SYSDATE(6), advanced_at), fence = GREATEST(fence, $2);
SELECT fence FROM tokenrun_resources WHERE resource = $1
