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
    retried_at Nullable(DateTime64(9, 'UTC')) COMMENT 'When it could be read after all and its events were in v_ticks; null while it cannot',
    retried_ticks UInt32 COMMENT 'How many of its events were not in v_ticks before it was retried',
    topic LowCardinality(String) COMMENT 'Dead letter topic; TOPIC/PARTITION of a record that could not be decoded where it lies',
    log_offset Int64 COMMENT 'Offset there',
    origin_topic LowCardinality(String) COMMENT 'Topic that the record came from, empty if a producer refused it',
    origin_partition Int32 COMMENT 'Partition there',
    origin_offset Int64 COMMENT 'Offset there',
    published DateTime64(9, 'UTC') COMMENT 'Not known before: when it was read, as ingest_time; what is shown of a retry was not known before retried_at'
)
AS SELECT l.source, l.reason, l.detail, l.ingest_time, l.event_id, l.payload, l.truncated, l.adapter_version,
    if(r.topic = '', NULL, r.retried_at) AS retried_at, r.ticks AS retried_ticks,
    l.topic, l.log_offset, l.origin_topic, l.origin_partition, l.origin_offset, l.ingest_time AS published
FROM (SELECT * FROM {database}.dead_letters FINAL) AS l
LEFT JOIN (SELECT * FROM {database}.dead_retries FINAL) AS r ON r.topic = l.topic AND r.letter_offset = l.log_offset
COMMENT 'Messages that could not become ticks, and records of the log that cannot be decoded: one row each, kept for at least 90 days'
