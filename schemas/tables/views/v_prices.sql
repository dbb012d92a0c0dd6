CREATE OR REPLACE VIEW default.v_prices
(
    coin_id LowCardinality(String) COMMENT 'Canonical id of the coin (CoinGecko slug)',
    symbol LowCardinality(String) COMMENT 'Symbol of the coin, upper case',
    time DateTime('UTC') COMMENT 'The evaluated second, UTC',
    price Nullable(Float64) COMMENT 'Published median, USD; NULL where reason says why there is none',
    median0 Nullable(Float64) COMMENT 'Median before outliers were left out, USD',
    min Nullable(Float64) COMMENT 'Least accepted price, USD',
    max Nullable(Float64) COMMENT 'Greatest accepted price, USD',
    confidence Nullable(Float64) COMMENT 'Half width of the confidence interval, USD',
    score Nullable(Float64) COMMENT 'Trust in the price, 0 to 1',
    accepted UInt32 COMMENT 'Providers that count',
    rejected UInt32 COMMENT 'Providers that were left out',
    volume_24h Float64 COMMENT 'Volume of the last 24 h of the accepted providers, USD',
    source LowCardinality(String) COMMENT 'Accepted provider nearest to the median',
    reason LowCardinality(String) COMMENT 'Empty, no_fresh_inputs or no_consensus',
    simulated Bool COMMENT 'Made from simulated ticks',
    inputs Array(Tuple(provider String, symbol String, quote_id String, value Float64, rate Float64, price_usd Float64, accepted Bool, reason String, basis String, partition Int32, offset Int64)) COMMENT 'What the price was made from: market, value in the quote, USD rate, USD price, whether it counted or why not, and the record of ticks.raw.v1',
    log_partition Int32 COMMENT 'Partition of ticks.v1 that caused it',
    log_offset Int64 COMMENT 'Offset in ticks.v1 that caused it',
    published DateTime64(9, 'UTC') COMMENT 'Not known before: the log time at which it was published. Readers had it some tenths of a second later. The year 2200 of rows of before this was recorded'
)
AS SELECT
    coin_id, symbol, time,
    if(reason = '', price, NULL) AS price, if(reason = '', median0, NULL) AS median0,
    if(reason = '', min, NULL) AS min, if(reason = '', max, NULL) AS max,
    if(reason = '', confidence, NULL) AS confidence, if(reason = '', score, NULL) AS score,
    accepted, rejected, volume_24h, source, reason, simulated,
    arrayZip(inputs.provider, inputs.symbol, inputs.quote_id, inputs.value, inputs.rate, inputs.price_usd, inputs.accepted, inputs.reason, inputs.basis, inputs.partition, inputs.offset) AS inputs,
    log_partition, log_offset, if(p.published = 0, toDateTime64('2200-01-01 00:00:00', 9, 'UTC'), fromUnixTimestamp64Nano(p.published, 'UTC')) AS published
FROM {database}.prices AS p FINAL
COMMENT 'Published prices with all that they were made from, one row a coin and second in which it changed, kept for 7 days, or 1 in the embedded engine, or for as long as the disk budget has room for them'
