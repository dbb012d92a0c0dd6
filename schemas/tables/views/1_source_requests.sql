CREATE OR REPLACE VIEW {database}.source_requests
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
    readings_24h Int64,
    stood Nullable(DateTime64(9, 'UTC')),
    last_compared Nullable(DateTime64(9, 'UTC')),
    held_since Nullable(DateTime64(9, 'UTC')),
    last_heard Nullable(DateTime64(9, 'UTC'))
)
AS WITH (
    SELECT max(started) FROM {database}.fetches
    WHERE started <= {at:DateTime64(9, 'UTC')} AND toUnixTimestamp64Nano(started) + duration_ns <= toUnixTimestamp64Nano({at:DateTime64(9, 'UTC')})
) AS newest
SELECT h.*, ifNull(m.last_moved, m.first_compared) AS stood, m.last_compared AS last_compared, ifNull(m.last_told, m.first_heard) AS held_since, m.last_heard AS last_heard
FROM (
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
            FROM {database}.fetches FINAL
            WHERE started > newest - toIntervalDay(7) AND started <= newest AND toUnixTimestamp64Nano(started) + duration_ns <= toUnixTimestamp64Nano({at:DateTime64(9, 'UTC')})
        ) GROUP BY source
    )
) AS h
LEFT JOIN (
    SELECT source, toNullable(min(started)) AS first_heard, toNullable(max(started)) AS last_heard, maxOrNullIf(started, held > 0) AS last_told,
        minOrNullIf(first, compared) AS first_compared, maxOrNullIf(started, compared AND told != 0 AND told != before) AS last_moved,
        maxOrNullIf(started, compared) AS last_compared
    FROM (
        SELECT source, started, told, before IS NOT NULL AND (told != 0 OR status = 304) AS compared,
            anyLast(nullIf(told, 0)) OVER (PARTITION BY source, feed, url ORDER BY started ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before,
            anyLast(if(status = 304, NULL, readings)) OVER (PARTITION BY source, feed, url ORDER BY started ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS held,
            min(if(told = 0, NULL, started)) OVER (PARTITION BY source, feed, url ORDER BY started ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS first
        FROM {database}.fetches FINAL
        WHERE started > newest - toIntervalDay(7) AND started <= newest AND toUnixTimestamp64Nano(started) + duration_ns <= toUnixTimestamp64Nano({at:DateTime64(9, 'UTC')}) AND error = ''
    ) GROUP BY source
) AS m ON m.source = h.source
COMMENT 'How requests to each source went that had ended by an instant, in the 7 days before the newest of them. stood: the last answer that held other values than the one from the same address before, else the first that is compared; last_compared: the newest that is; held_since: the last answer that held a value, else the first; last_heard: the newest answer'
