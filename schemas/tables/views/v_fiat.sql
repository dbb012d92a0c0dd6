CREATE OR REPLACE VIEW default.v_fiat
(
    currency LowCardinality(String) COMMENT 'ISO 4217 code',
    rate Float64 COMMENT 'Units of the currency for one USD: the median over the sources that count, the mean of the middle two where their number is even; where none counts, the newest',
    usd Float64 COMMENT 'USD for one unit of it',
    day Date COMMENT 'Newest day that a rate of it holds for',
    time DateTime64(9, 'UTC') COMMENT 'When the newest rate that counts was set, or its source last read with it; of a daily rate the beginning of its day',
    stale Bool COMMENT 'Whether no source counts',
    sources Array(String) COMMENT 'Those that count',
    left_out Array(Tuple(source String, reason String)) COMMENT 'Those that do not: stale, a daily rate of more than 6 days ago or another that was not set or read for three intervals of its source; repeats, blended from nothing but others that count; outlier, more than half of the first median away',
    published DateTime64(9, 'UTC') COMMENT 'Not known before, as it is: when the newest of all rates was read. What the blend was before is not kept'
)
AS SELECT currency, if(stale, argMin(v.per_usd, (-toUnixTimestamp64Nano(v.time), v.source)), (quantileExactLowIf(v.per_usd, v.reason = '') + quantileExactHighIf(v.per_usd, v.reason = '')) / 2) AS rate,
    1 / rate AS usd, max(v.day) AS day, if(stale, max(v.time), maxIf(v.time, v.reason = '')) AS time, toBool(countIf(v.reason = '') = 0) AS stale,
    arraySort(groupArrayIf(toString(v.source), v.reason = '')) AS sources, arraySort(groupArrayIf((toString(v.source), toString(v.reason)), v.reason != '')) AS left_out,
    assumeNotNull((SELECT max(ingest_time) FROM {database}.fiat_rates)) AS published
FROM {database}.fiat_votes AS v GROUP BY currency
COMMENT 'The newest rate of each currency against USD, blended from its sources'
