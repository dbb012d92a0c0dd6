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
    readings_24h Int64,
    standstill String,
    standstill_since Nullable(DateTime64(9, 'UTC'))
)
AS WITH (SELECT max(started) FROM {database}.fetches) AS newest
SELECT h.*, multiIf(m.empty_since IS NOT NULL, 'empty', m.unmoved_since IS NOT NULL, 'unmoved', '') AS standstill, ifNull(m.empty_since, m.unmoved_since) AS standstill_since
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
            FROM {database}.fetches FINAL WHERE started > newest - toIntervalDay(7)
        ) GROUP BY source
    )
) AS h
LEFT JOIN (
    SELECT a.source AS source, ifNull(last_moved, first_compared) AS stood, ifNull(last_told, first_heard) AS held_since,
        if(s.moves_ns > 0 AND toUnixTimestamp64Nano(last_compared) - toUnixTimestamp64Nano(stood) >= 3 * s.moves_ns, stood, NULL) AS unmoved_since,
        if(s.interval_ns > 0 AND toUnixTimestamp64Nano(last_heard) - toUnixTimestamp64Nano(held_since) >= 3 * s.interval_ns, held_since, NULL) AS empty_since
    FROM (
        SELECT source, min(started) AS first_heard, max(started) AS last_heard, maxOrNullIf(started, held > 0) AS last_told,
            minOrNullIf(first, compared) AS first_compared, maxOrNullIf(started, compared AND told != 0 AND told != before) AS last_moved,
            maxOrNullIf(started, compared) AS last_compared
        FROM (
            SELECT source, started, told, before IS NOT NULL AND (told != 0 OR status = 304) AS compared,
                anyLast(nullIf(told, 0)) OVER (PARTITION BY source, feed, url ORDER BY started ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before,
                anyLast(if(status = 304, NULL, readings)) OVER (PARTITION BY source, feed, url ORDER BY started ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS held,
                min(if(told = 0, NULL, started)) OVER (PARTITION BY source, feed, url ORDER BY started ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS first
            FROM {database}.fetches FINAL WHERE started > newest - toIntervalDay(7) AND error = ''
        ) GROUP BY source
    ) AS a
    INNER JOIN (SELECT source, interval_ns, moves_ns FROM {database}.sources FINAL) AS s ON s.source = a.source
) AS m ON m.source = h.source
COMMENT 'How requests to each source went in the 7 days before the newest of all. It stands still, empty, if no answer has held any value for three of its intervals, and unmoved, if none has held other values than the one from the same address before for three times as long as its values are expected to move in'
