CREATE OR REPLACE VIEW default.v_sources
(
    source LowCardinality(String) COMMENT 'Source',
    name String COMMENT 'Its name for people',
    kinds Array(String) COMMENT 'What it reports: coin, market, stablecoin, tvl, fear_greed, fiat, global, price',
    status Enum8('healthy' = 1, 'degraded' = 2, 'down' = 3, 'disabled' = 4) COMMENT 'disabled: not switched on. Of what is polled, down: no success within 7 days, or the last 3 requests failed; degraded: the last one failed, less than 95 % of 24 h succeeded, or it stands still; healthy otherwise. Of a stream, healthy: heard within 120 s before the newest price; degraded: within 10 minutes; down otherwise',
    last_heard Nullable(DateTime64(9, 'UTC')) COMMENT 'When a price of a stream was last received; NULL for what is polled, and where none was within 15 minutes before the newest price',
    success_rate_24h Nullable(Float64) COMMENT 'Share of requests of the last 24 h that succeeded, 0 to 1; NULL without one',
    success_rate_7d Nullable(Float64) COMMENT 'The same of 7 days',
    requests_24h UInt64 COMMENT 'Requests of the last 24 h',
    last_attempt Nullable(DateTime64(9, 'UTC')) COMMENT 'When the newest request began; NULL without one in 7 days',
    last_success Nullable(DateTime64(9, 'UTC')) COMMENT 'When the newest that succeeded began',
    consecutive_failures UInt64 COMMENT 'Requests that failed since',
    last_error String COMMENT 'What the newest failed request failed with; empty without one in 7 days',
    last_error_at Nullable(DateTime64(9, 'UTC')) COMMENT 'When that began',
    latency_p50_ms Nullable(Float64) COMMENT 'Median duration of the requests of 24 h that succeeded, milliseconds, by nearest rank',
    latency_p95_ms Nullable(Float64) COMMENT 'Their 95th percentile',
    readings_24h Int64 COMMENT 'Values in the answers of the last 24 h',
    standstill LowCardinality(String) COMMENT 'empty: its answers have held nothing for three of its intervals; unmoved: they have held the same values for three times moves_seconds; else empty text. Of what is polled',
    standstill_since Nullable(DateTime64(9, 'UTC')) COMMENT 'When the last request began whose answer held a value, or another value; NULL while it does not stand still',
    interval_seconds Float64 COMMENT 'How often its most frequent feed is read, seconds; 0 for a stream',
    moves_seconds Float64 COMMENT 'How often its values are expected to move, seconds; 0 where they may stand for any time',
    url String COMMENT 'Address of its interface',
    license String COMMENT 'Terms under which its values may be passed on',
    terms String COMMENT 'Page that says so',
    attribution String COMMENT 'What has to be shown with them; empty if nothing is asked',
    simulated Bool COMMENT 'Whether the simulator stands in for it',
    published DateTime64(9, 'UTC') COMMENT 'Not known before, as it is: when the newest of the declaration, the last request and the newest price came. What the row was before is not kept'
)
AS WITH (SELECT max(time) FROM {database}.prices) AS newest
SELECT s.source AS source, s.name AS name, s.kinds AS kinds,
    multiIf(NOT s.enabled, 'disabled', s.interval_ns = 0, multiIf(v.heard >= newest - toIntervalSecond(120), 'healthy', v.heard >= newest - toIntervalMinute(10), 'degraded', 'down'),
        h.requests_7d = 0 OR h.last_success IS NULL OR h.consecutive_failures >= 3, 'down',
        h.consecutive_failures > 0 OR h.succeeded_24h < 0.95 * h.requests_24h OR h.standstill != '', 'degraded', 'healthy') AS status,
    if(v.venue = '', NULL, v.heard) AS last_heard,
    if(h.requests_24h = 0, NULL, h.succeeded_24h / h.requests_24h) AS success_rate_24h, if(h.requests_7d = 0, NULL, h.succeeded_7d / h.requests_7d) AS success_rate_7d,
    h.requests_24h AS requests_24h, if(h.requests_7d = 0, NULL, h.last_attempt) AS last_attempt, h.last_success AS last_success,
    h.consecutive_failures AS consecutive_failures, h.last_error AS last_error, h.last_error_at AS last_error_at,
    if(h.succeeded_24h = 0, NULL, h.latency_p50_ns / 1e6) AS latency_p50_ms, if(h.succeeded_24h = 0, NULL, h.latency_p95_ns / 1e6) AS latency_p95_ms,
    h.readings_24h AS readings_24h, h.standstill AS standstill, h.standstill_since AS standstill_since,
    s.interval_ns / 1e9 AS interval_seconds, s.moves_ns / 1e9 AS moves_seconds, s.url AS url, s.license AS license, s.terms AS terms, s.attribution AS attribution, s.simulated AS simulated,
    greatest(ifNull(toDateTime64(newest, 9, 'UTC'), s.ingest_time), s.ingest_time, ifNull(h.last_attempt, s.ingest_time)) AS published
FROM (SELECT * FROM {database}.sources FINAL) AS s
LEFT JOIN {database}.source_health AS h ON h.source = s.source
LEFT JOIN (
    SELECT provider AS venue, fromUnixTimestamp64Nano(max(at), 'UTC') AS heard FROM {database}.prices
    ARRAY JOIN inputs.provider AS provider, arrayMap((q, l) -> greatest(q, l), inputs.quote_heard, inputs.last_heard) AS at
    WHERE time > newest - toIntervalMinute(15) GROUP BY venue
) AS v ON v.venue = s.source
COMMENT 'Venues and other sources, as they declare themselves; those that are polled as requests to them went in the 7 days before the newest of all, streams as prices were received'
