CREATE OR REPLACE VIEW default.v_ticks
(
    coin_id LowCardinality(String) COMMENT 'Canonical id of the coin; empty if the base is unmapped',
    venue LowCardinality(String) COMMENT 'Venue',
    symbol LowCardinality(String) COMMENT 'Symbol of the market as on the wire',
    base LowCardinality(String) COMMENT 'Base as the venue spells it',
    quote LowCardinality(String) COMMENT 'Quote as the venue spells it',
    quote_id LowCardinality(String) COMMENT 'Coin id or currency code of the quote',
    kind Enum8('trade' = 1, 'quote' = 2, 'ticker' = 3) COMMENT 'trade: an event; quote, ticker: a state',
    event_time DateTime64(9, 'UTC') COMMENT 'When it happened at the venue; the ingest time if the venue does not say',
    ingest_time DateTime64(9, 'UTC') COMMENT 'When it was read',
    event_id String COMMENT 'Event id in hexadecimal',
    price Nullable(Decimal(38, 18)) COMMENT 'Price of a trade in the quote, exact',
    size Nullable(Decimal(38, 18)) COMMENT 'Size of a trade in the base, exact',
    side Enum8('' = 0, 'buy' = 1, 'sell' = 2) COMMENT 'Side of the taker',
    trade_id String COMMENT 'Trade id of the venue',
    bid Nullable(Decimal(38, 18)) COMMENT 'Best bid in the quote, exact',
    ask Nullable(Decimal(38, 18)) COMMENT 'Best ask in the quote, exact',
    last Nullable(Decimal(38, 18)) COMMENT 'Last price that a ticker carries, exact',
    volume_base Nullable(Decimal(38, 18)) COMMENT '24 h volume in the base that a ticker carries',
    volume_quote Nullable(Decimal(38, 18)) COMMENT '24 h volume in the quote that a ticker carries',
    rate Float64 COMMENT 'USD for one unit of the quote when the tick passed; 0 with the flag no_rate',
    rate_time DateTime64(9, 'UTC') COMMENT 'Second that this rate was evaluated in',
    flags Array(String) COMMENT 'crossed, late, unmapped, no_rate, not_spot; doubtful: the market bears the symbol of a coin and has not had its price for long; excluded: an operator''s correction leaves it out (v_corrections)',
    snapshot Bool COMMENT 'History that the venue sent on subscribing',
    simulated Bool COMMENT 'From the simulator',
    raw_partition Int32 COMMENT 'Partition of ticks.raw.v1',
    raw_offset Int64 COMMENT 'Offset there',
    log_partition Int32 COMMENT 'Partition of ticks.v1',
    log_offset Int64 COMMENT 'Offset there',
    published DateTime64(9, 'UTC') COMMENT 'Not known before: when it was read, as ingest_time'
)
AS SELECT coin_id, venue, symbol, base, quote, quote_id, kind, event_time, ingest_time, lower(hex(event_id)) AS event_id,
    price, size, side, trade_id, bid, ask, last, volume_base, volume_quote, rate, rate_time,
    arrayFilter((name, i) -> bitTest(flags, i), ['crossed', 'late', 'unmapped', 'no_rate', 'not_spot', 'doubtful', 'excluded'], [0, 1, 2, 3, 4, 6, 7]) AS flags,
    snapshot, simulated, raw_partition, raw_offset, log_partition, log_offset, ingest_time AS published
FROM {database}.ticks FINAL
COMMENT 'Trades, quotes and tickers as the venues sent them, repeated states left out, kept for 7 days, or for as long as the disk budget has room for them'
