CREATE OR REPLACE VIEW default.v_fetches
(
    source LowCardinality(String) COMMENT 'Source that was asked',
    started DateTime64(9, 'UTC') COMMENT 'When the request began',
    feed LowCardinality(String) COMMENT 'What was asked for, by the source''s name of it',
    url String COMMENT 'Address; keys are never in it',
    status Int32 COMMENT 'HTTP status of the last attempt; 0 without an answer, 304 if nothing had changed',
    ok Bool COMMENT 'Whether an answer could be read',
    error String COMMENT 'What went wrong; empty if nothing did',
    duration_ms Float64 COMMENT 'From the beginning to the end, milliseconds, retries included',
    readings Int64 COMMENT 'Values in the answer, also those that had not changed',
    published DateTime64(9, 'UTC') COMMENT 'Not known before: when the request ended'
)
AS SELECT source, started, feed, url, status, toBool(error = '') AS ok, error, duration_ns / 1e6 AS duration_ms, readings,
    addNanoseconds(started, duration_ns) AS published FROM {database}.fetches FINAL
COMMENT 'Requests to sources that are polled, kept for at least 90 days'
