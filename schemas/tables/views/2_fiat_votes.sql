CREATE OR REPLACE VIEW {database}.fiat_votes
(
    source LowCardinality(String),
    currency LowCardinality(String),
    per_usd Float64,
    day Date,
    time DateTime64(9, 'UTC'),
    reason LowCardinality(String)
)
AS WITH (SELECT greatest((SELECT max(started) FROM {database}.fetches), (SELECT max(ingest_time) FROM {database}.fiat_rates))) AS now,
newest AS (
    SELECT source, base, quote, toFloat64(argMax(f.rate, (f.day, f.event_time))) AS rate, max((f.day, f.event_time)) AS at, argMax(f.providers, (f.day, f.event_time)) AS by
    FROM {database}.fiat_rates AS f FINAL GROUP BY source, base, quote
),
-- As a source publishes it, inverted, or by way of the first base that has both of the same day.
told AS (
    SELECT source, quote AS currency, rate AS per_usd, at.1 AS day, at.2 AS event, by, (1, base) AS way FROM newest WHERE base = 'USD' AND quote != 'USD'
    UNION ALL
    SELECT source, base, 1 / rate, at.1, at.2, by, (2, base) FROM newest WHERE quote = 'USD' AND base != 'USD'
    UNION ALL
    SELECT n.source, n.quote, n.rate / d.rate, n.at.1, least(n.at.2, d.at.2), n.by, (3, n.base) FROM newest AS n
    INNER JOIN newest AS d ON d.source = n.source AND d.base = n.base AND d.quote = 'USD'
    WHERE n.quote != 'USD' AND n.base != 'USD' AND n.at.1 = d.at.1
),
-- A rate that has not changed is as good as when its source was last read.
dated AS (
    SELECT t.source AS source, t.currency AS currency, argMin(t.per_usd, t.way) AS per_usd, argMin(t.day, t.way) AS day, argMin(t.event, t.way) AS event, argMin(t.by, t.way) AS by,
        toUnixTimestamp64Nano(event) = 0 AS daily, any(r.read) AS read, any(s.interval_ns) AS interval,
        multiIf(daily, toDateTime64(day, 9, 'UTC'), read < toDateTime64(day, 9, 'UTC') + toIntervalDay(2), greatest(event, read), event) AS time,
        if(daily, now > time + toIntervalDay(6), now > time + toIntervalNanosecond(3 * if(interval = 0, 900000000000, interval))) AS stale
    FROM told AS t
    LEFT JOIN (SELECT source, max(started) AS read FROM {database}.fetches WHERE error = '' GROUP BY source) AS r ON r.source = t.source
    LEFT JOIN (SELECT source, interval_ns FROM {database}.sources FINAL) AS s ON s.source = t.source
    WHERE t.per_usd > 0 GROUP BY source, currency
),
single AS (
    SELECT *, groupArrayIf(toString(source), NOT stale AND empty(by)) OVER (PARTITION BY currency) AS voters,
        NOT stale AND notEmpty(by) AND hasAll(voters, arrayMap(p -> lower(toString(p)), by)) AS repeats
    FROM dated
)
SELECT source, currency, per_usd, day, time,
    multiIf(stale, 'stale', repeats, 'repeats', abs(per_usd - first) > first / 2, 'outlier', '') AS reason
FROM (
    SELECT *, arraySort(groupArrayIf(per_usd, NOT stale AND NOT repeats) OVER (PARTITION BY currency)) AS rates,
        (rates[intDiv(length(rates) + 1, 2)] + rates[intDiv(length(rates), 2) + 1]) / 2 AS first
    FROM single
)
COMMENT 'What each currency costs by each source, in units for one USD, and why it does not count: stale, repeats or outlier'
