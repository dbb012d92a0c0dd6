CREATE OR REPLACE VIEW default.v_dead_letters
(
    source LowCardinality(String) COMMENT 'Venue or source whose message it was',
    reason LowCardinality(String) COMMENT 'undecodable, not_a_number, non_positive, absurd, precision, future, stale_source or retired_api',
    detail String COMMENT 'What was wrong, in words',
    ingest_time DateTime64(9, 'UTC') COMMENT 'When it was read',
    event_id String COMMENT 'Event id in hexadecimal, empty if it had none',
    payload String COMMENT 'The message itself, at most 64 kB of it',
    truncated Bool COMMENT 'Whether the message was longer',
    adapter_version UInt32 COMMENT 'Version of the decoder that refused it; 0 for a processor',
    topic LowCardinality(String) COMMENT 'Dead letter topic',
    log_offset Int64 COMMENT 'Offset in that topic',
    origin_topic LowCardinality(String) COMMENT 'Topic that the record came from, empty if a producer refused it',
    origin_partition Int32 COMMENT 'Partition there',
    origin_offset Int64 COMMENT 'Offset there'
)
AS SELECT source, reason, detail, ingest_time, event_id, payload, truncated, adapter_version,
    topic, log_offset, origin_topic, origin_partition, origin_offset
FROM {database}.dead_letters FINAL
COMMENT 'Messages that could not become ticks, one row each, kept for at least 90 days'
