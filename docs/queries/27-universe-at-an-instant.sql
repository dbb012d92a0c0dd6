-- The twenty largest coins that three venues listed an hour ago, as it was known then
--
-- Columns: coin_id; symbol; rank, market_cap in USD and the day that they are of; venues that listed it; pairs, its markets in dollars or tether.
-- Right because: the view takes an instant and shows nothing that was published after it: neither the day that went on then, nor a market that was listed later, and
-- markets that are gone since are among them. On the first day of an instance there are lists and no ranks yet.
SELECT coin_id, symbol, rank, market_cap, day, venues, arrayMap(m -> concat(m.venue, ' ', m.symbol), arrayFilter(m -> m.quote_id IN ('USD', 'tether'), markets)) AS pairs
FROM v_universe_at(at = now() - 3600)
WHERE venues >= 3
ORDER BY rank = 0, rank, venues DESC, coin_id
LIMIT 20
