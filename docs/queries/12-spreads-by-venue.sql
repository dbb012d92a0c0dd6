-- Spreads of bitcoin by venue
--
-- Columns: venue; symbol of the market; quotes, with tickers, of five minutes; spread_bps, the median distance of ask and bid; least_bps, the least.
-- Right because: a venue sends its best bid and ask as quotes, as tickers or both. A crossed one, whose bid is not below its ask, is one in which two
-- updates met, and has no spread.
SELECT venue, symbol, count() AS quotes, quantileExactLow(10000 * toFloat64(ask - bid) / toFloat64(bid)) AS spread_bps,
    min(10000 * toFloat64(ask - bid) / toFloat64(bid)) AS least_bps
FROM v_ticks
WHERE coin_id = 'bitcoin' AND ingest_time BETWEEN now() - 300 AND now() AND bid > 0 AND ask > bid
GROUP BY venue, symbol
ORDER BY spread_bps, venue, symbol
