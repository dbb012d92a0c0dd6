CREATE OR REPLACE VIEW default.v_fear_greed
(
    day Date COMMENT 'The day',
    source LowCardinality(String) COMMENT 'Who publishes it; marketlog for our own index as of the end of the day, or as of now',
    value UInt8 COMMENT '0 extreme fear to 100 extreme greed',
    classification LowCardinality(String) COMMENT 'Extreme Fear, Fear, Neutral, Greed or Extreme Greed',
    time DateTime64(9, 'UTC') COMMENT 'When it was read, or the end of the minute that it was made in',
    published DateTime64(9, 'UTC') COMMENT 'Not known before: when it was read, as time; of our own index a minute later'
)
AS SELECT day, source, value, classification, ingest_time AS time, ingest_time AS published FROM {database}.fear_greed FINAL
UNION ALL
SELECT toDate(s.time - 1) AS day, 'marketlog' AS source, assumeNotNull(argMax(s.fear_greed, s.time)) AS value,
    multiIf(value < 26, 'Extreme Fear', value < 47, 'Fear', value < 55, 'Neutral', value < 76, 'Greed', 'Extreme Greed') AS classification,
    toDateTime64(max(s.time), 9, 'UTC') AS time, time + toIntervalMinute(1) AS published
FROM {database}.summaries AS s FINAL WHERE s.fear_greed IS NOT NULL GROUP BY day
COMMENT 'Indexes of fear and greed, one row a source and day, kept for ever'
