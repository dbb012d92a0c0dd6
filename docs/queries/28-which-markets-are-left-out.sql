-- Which markets were left out of prices most today, and for which fault
--
-- Columns: venue; symbol; coin_id; prices it was among the inputs of; rejected_percent; silent, outlier, wide, crossed and no_rate, seconds by fault; deviation_bps, its median distance where it
-- counted; gap_seconds.
-- Right because: each price names its inputs, so a market that was left out is counted as often as it was. That another market of the venue had its vote is no fault. Only
-- seconds in which the price of the coin changed count; markets with fewer than ten are left out.
SELECT venue, symbol, coin_id, prices, rejected_percent, silent, outlier, wide, crossed, no_rate, deviation_bps, gap_seconds
FROM v_quality
WHERE day = toDate(now()) AND prices - other_market >= 10
ORDER BY rejected_percent DESC, prices DESC, venue, symbol
LIMIT 30
