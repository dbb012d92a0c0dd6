CREATE OR REPLACE VIEW {database}.rates_past_attached
(
    source LowCardinality(String),
    pool String,
    category LowCardinality(String),
    event_time DateTime64(9, 'UTC'),
    coin_id String,
    symbol LowCardinality(String),
    provider LowCardinality(String),
    provider_symbol String,
    chain LowCardinality(String),
    apr Float64,
    apy Float64,
    tvl_usd Nullable(Float64),
    simulated Bool,
    read_time DateTime64(9, 'UTC')
)
AS SELECT p.source AS source, p.pool AS pool, if(p.category = '', n.category, p.category) AS category, p.event_time AS event_time,
    if(p.coin_id = '', n.coin_id, p.coin_id) AS coin_id, if(p.coin_id = '', n.symbol, p.symbol) AS symbol, if(n.provider = '', p.provider, n.provider) AS provider,
    if(p.provider_symbol = '', n.provider_symbol, p.provider_symbol) AS provider_symbol, if(p.chain = '', n.chain, p.chain) AS chain, p.apr AS apr, p.apy AS apy, p.tvl_usd AS tvl_usd,
    n.simulated AS simulated, p.ingest_time AS read_time
FROM {database}.rates_past AS p FINAL
LEFT ANY JOIN (
    SELECT source, pool, tupleElement(newest, 1) AS category, tupleElement(newest, 2) AS coin_id, tupleElement(newest, 3) AS symbol,
        tupleElement(newest, 4) AS provider, tupleElement(newest, 5) AS provider_symbol, tupleElement(newest, 6) AS chain,
        tupleElement(newest, 7) AS simulated
    FROM (SELECT source, pool, argMin((category, coin_id, symbol, provider, provider_symbol, chain, simulated), (ended, category = 'borrowing', category)) AS newest
        FROM {database}.rates_now FINAL GROUP BY source, pool)
) AS n ON p.source = n.source AND p.pool = n.pool
COMMENT 'Rates of the past; what their source did not tell of them is taken from the rate of the pool as it is now'
