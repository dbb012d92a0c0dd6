// Package coins answers for coins: the markets that a coin's price is made from, each at its own
// exchange, and the history of its price.
package coins

import (
	"strings"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/schemas"
)

// Unit answers the endpoints of coins.
type Unit struct {
	board   *query.Board
	candles *query.Candles
}

// New makes the unit.
func New(board *query.Board, candles *query.Candles) *Unit {
	return &Unit{board: board, candles: candles}
}

// Endpoints declares what the unit answers.
func (u *Unit) Endpoints() []query.Endpoint {
	return []query.Endpoint{u.markets(), u.history()}
}

// find turns what a path names by id into a coin; a symbol does where no coin has that id.
func (u *Unit) find(name string) (schemas.Coin, error) {
	if coin, ok := u.board.Coins().ByID(strings.ToLower(name)); ok {
		return coin, nil
	}
	found, ok := u.board.Find(name)
	if !ok {
		return schemas.Coin{}, unknown(name)
	}
	return found.Coin, nil
}

func unknown(name string) error {
	return query.NotFound("no coin has the id or symbol %q", strings.ToValidUTF8(name, "�"))
}
