CREATE OR REPLACE VIEW default.v_usage
(
    day Date COMMENT 'Day, UTC',
    budget String COMMENT 'Id of the first of the keys that share the budget; address:… for those without a key, open where no key is asked for',
    plan LowCardinality(String) COMMENT 'Plan of the key when it asked',
    requests UInt64 COMMENT 'Requests that were counted: all but those that were refused, or that failed by our fault',
    charts UInt64 COMMENT 'Of them, requests for charts',
    others UInt64 COMMENT 'All but those for charts',
    replicas UInt64 COMMENT 'Processes that answered them',
    last_time DateTime64(9, 'UTC') COMMENT 'When the counts were reported last',
    published DateTime64(9, 'UTC') COMMENT 'Not known before, as it is: as last_time'
)
AS SELECT u.day AS day, u.budget AS budget, u.plan AS plan, sum(u.requests) AS requests, sum(u.charts) AS charts,
    sum(u.requests - least(u.charts, u.requests)) AS others, uniqExact(u.replica) AS replicas, max(u.time) AS last_time, max(u.time) AS published
FROM {database}.usage AS u FINAL
GROUP BY day, budget, plan
COMMENT 'Requests that were counted, by day, budget and plan; seconds behind'
