CREATE OR REPLACE VIEW default.v_listings
(
    time DateTime64(9, 'UTC') COMMENT 'When the list that showed it was read; lists are read once an hour, and when a message names an unknown market',
    venue LowCardinality(String) COMMENT 'Venue',
    symbol String COMMENT 'Symbol of the market as on the wire',
    change Enum8('listed' = 1, 'changed' = 2, 'gone' = 3, 'back' = 4, 'halted' = 5) COMMENT 'listed: first seen in the list; changed: base, quote or what they mean; halted: the list has it and says that it does not trade now; gone: the list has it no more: it was delisted, or it was halted and the list of the venue has only what trades (bitfinex, gemini, upbit); back: it trades again',
    status LowCardinality(String) COMMENT 'By what the list says that it does not trade, in the words of the venue, as in state=suspend; empty unless it is halted',
    base LowCardinality(String) COMMENT 'Base as the list has it',
    quote LowCardinality(String) COMMENT 'Quote as the list has it',
    coin_id LowCardinality(String) COMMENT 'Canonical id of the coin by the coin table; empty if the base is unmapped',
    quote_id LowCardinality(String) COMMENT 'Coin id or currency code of the quote; empty if it is unmapped',
    first_seen DateTime64(9, 'UTC') COMMENT 'When the market was first in the list, as far as the instance knew. Of what was listed before the instance began, that is its beginning',
    simulated Bool COMMENT 'From the simulator',
    published DateTime64(9, 'UTC') COMMENT 'Not known before: when it was read, as time'
)
AS SELECT time, venue, symbol, multiIf(gone AND status != '', 'halted', gone, 'gone', was_gone, 'back', first, 'listed', 'changed') AS change, status, base, quote, coin_id, quote_id, first_seen, simulated, time AS published
FROM {database}.listing_changes
COMMENT 'Changes in the lists of spot markets of venues, one row a market and change, kept for ever'
