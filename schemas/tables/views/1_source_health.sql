CREATE OR REPLACE VIEW {database}.source_health
(
    source LowCardinality(String),
    requests_24h UInt64,
    succeeded_24h UInt64,
    requests_7d UInt64,
    succeeded_7d UInt64,
    last_attempt DateTime64(9, 'UTC'),
    last_success Nullable(DateTime64(9, 'UTC')),
    last_error String,
    last_status Int32,
    last_error_at Nullable(DateTime64(9, 'UTC')),
    consecutive_failures UInt64,
    latency_p50_ns Int64,
    latency_p95_ns Int64,
    readings_24h Int64
)
AS WITH (SELECT max(started) FROM {database}.fetches) AS newest
SELECT source, requests_24h, succeeded_24h, requests_7d, succeeded_7d, last_attempt, last_success, last_error, last_status, last_error_at, consecutive_failures,
    latencies_ns[intDiv(length(latencies_ns) * 50 + 99, 100)] AS latency_p50_ns, latencies_ns[intDiv(length(latencies_ns) * 95 + 99, 100)] AS latency_p95_ns, readings_24h
FROM (
    SELECT source, countIf(recent) AS requests_24h, countIf(recent AND ok) AS succeeded_24h, count() AS requests_7d, countIf(ok) AS succeeded_7d,
        max(started) AS last_attempt, any(success) AS last_success,
        argMaxIf(error, started, NOT ok) AS last_error, argMaxIf(status, started, NOT ok) AS last_status, maxOrNullIf(started, NOT ok) AS last_error_at,
        countIf(NOT ok AND (success IS NULL OR started > success)) AS consecutive_failures,
        arraySort(groupArrayIf(duration_ns, recent AND ok)) AS latencies_ns, sumIf(readings, recent) AS readings_24h
    FROM (
        SELECT source, started, status, error, duration_ns, readings, error = '' AS ok, started > newest - toIntervalDay(1) AS recent,
            maxOrNullIf(started, error = '') OVER (PARTITION BY source) AS success
        FROM {database}.fetches FINAL WHERE started > newest - toIntervalDay(7)
    ) GROUP BY source
)
COMMENT 'How requests to each source went in the 7 days before the newest of all'
