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
AS WITH if(s.moves_ns > 0 AND toUnixTimestamp64Nano(r.last_compared) - toUnixTimestamp64Nano(r.stood) >= 3 * s.moves_ns, r.stood, NULL) AS unmoved_since,
    if(s.interval_ns > 0 AND toUnixTimestamp64Nano(r.last_heard) - toUnixTimestamp64Nano(r.held_since) >= 3 * s.interval_ns, r.held_since, NULL) AS empty_since
SELECT r.* EXCEPT (stood, last_compared, held_since, last_heard),
    multiIf(empty_since IS NOT NULL, 'empty', unmoved_since IS NOT NULL, 'unmoved', '') AS standstill, ifNull(empty_since, unmoved_since) AS standstill_since
FROM {database}.source_requests(at = '2262-01-01 00:00:00') AS r
LEFT JOIN (SELECT source, interval_ns, moves_ns FROM {database}.sources FINAL) AS s ON s.source = r.source
COMMENT 'How requests to each source went in the 7 days before the newest of all. It stands still, empty, if no answer has held any value for three of its intervals, and unmoved, if none has held other values than the one from the same address before for three times as long as its values are expected to move in'
