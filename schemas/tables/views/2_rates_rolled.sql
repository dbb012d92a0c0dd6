CREATE OR REPLACE VIEW {database}.rates_rolled_{interval}
(
    coin_id String,
    category LowCardinality(String),
    source LowCardinality(String),
    pool String,
    start DateTime('UTC'),
    provider LowCardinality(String),
    symbol LowCardinality(String),
    provider_symbol String,
    chain LowCardinality(String),
    open Float64,
    high Float64,
    low Float64,
    close Float64,
    mean Float64,
    n UInt32,
    tvl_usd Nullable(Float64),
    simulated Bool,
    shadowed LowCardinality(String),
    origin String,
    published DateTime64(9, 'UTC')
)
AS SELECT coin_id, category, source, pool, start, provider, symbol, provider_symbol, chain, open, high, low, close, mean, n, tvl_usd, simulated, shadowed, 'live' AS origin,
    toDateTime64(start + {seconds} + 60, 9, 'UTC') AS published
FROM {database}.rates_{interval} FINAL
UNION ALL
SELECT p.coin_id AS coin_id, p.category AS category, p.source AS source, p.pool AS pool, p.start AS start, p.provider AS provider, p.symbol AS symbol,
    p.provider_symbol AS provider_symbol, p.chain AS chain, p.open AS open, p.high AS high, p.low AS low, p.close AS close, p.mean AS mean, p.n AS n, p.tvl_usd AS tvl_usd,
    p.simulated AS simulated, '' AS shadowed, 'backfill' AS origin, p.read_time AS published
FROM (SELECT source, category, pool, start FROM {database}.rates_{interval}) AS l
RIGHT ANTI JOIN (
    SELECT coin_id, category, source, pool, toDateTime({floor}(event_time), 'UTC') AS start, any(a.provider) AS provider, any(a.symbol) AS symbol,
        any(a.provider_symbol) AS provider_symbol, any(a.chain) AS chain, argMin(apy, event_time) AS open, max(apy) AS high, min(apy) AS low, argMax(apy, event_time) AS close,
        arrayAvg(arraySort(groupArray(apy))) AS mean, toUInt32(count()) AS n, argMax(tuple(a.tvl_usd), event_time).1 AS tvl_usd,
        any(a.simulated) AS simulated, max(a.read_time) AS read_time
    FROM {database}.rates_past_attached AS a GROUP BY coin_id, category, source, pool, start
) AS p ON l.source = p.source AND l.category = p.category AND l.pool = p.pool AND l.start = p.start
COMMENT 'What rates did in intervals of {interval}: by the answers that were read, and where none was by what sources reported afterwards'
