CREATE OR REPLACE VIEW default.v_sentiment
(
    time DateTime('UTC') COMMENT 'End of the minute',
    range LowCardinality(String) COMMENT 'Segment of ranks: 1-50, 51-100, 101-250 or all',
    positive UInt32 COMMENT 'Coins that rose within 24 h',
    negative UInt32 COMMENT 'Coins that fell',
    neutral UInt32 COMMENT 'Coins that did neither',
    total UInt32 COMMENT 'All whose change is known',
    ratio Float64 COMMENT 'positive / (positive + negative), 0 to 1; 0.5 where none moved',
    classification LowCardinality(String) COMMENT 'very bullish from 0.75, bullish from 0.55, neutral above 0.45, bearish above 0.25, else very bearish',
    average_change_24h Float64 COMMENT 'Mean of the changes, percent',
    median_change_24h Float64 COMMENT 'Their median, percent',
    published DateTime64(9, 'UTC') COMMENT 'Not known before: a minute after its minute by log time, by when it is written'
)
AS SELECT time, range, positive, negative, neutral, total, ratio, classification, average_change_24h, median_change_24h,
    toDateTime64(time + toIntervalMinute(1), 9, 'UTC') AS published FROM {database}.sentiment FINAL
COMMENT 'How many coins rose and fell, one row a minute and segment of ranks, kept for ever'
