CREATE OR REPLACE VIEW default.v_fiat
(
    currency LowCardinality(String) COMMENT 'ISO 4217 code',
    rate Float64 COMMENT 'Units of the currency for one USD: the median over the sources, the mean of the middle two where their number is even',
    usd Float64 COMMENT 'USD for one unit of it',
    day Date COMMENT 'Newest day that a rate holds for',
    time DateTime64(9, 'UTC') COMMENT 'When the newest of the rates was read',
    sources Array(String) COMMENT 'Whose newest rates it is blended from: those of at most 6 days before the newest'
)
AS SELECT currency, (quantileExactLow(per_usd) + quantileExactHigh(per_usd)) / 2 AS rate, 1 / rate AS usd, max(r.day) AS day, max(r.ingest_time) AS time,
    arraySort(groupArray(toString(r.source))) AS sources
FROM (SELECT *, max(day) OVER (PARTITION BY currency) AS newest FROM {database}.fiat_rates_usd) AS r
WHERE newest - r.day <= 6
GROUP BY currency
COMMENT 'The newest rate of each currency against USD'
