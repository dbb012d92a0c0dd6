package producers

import (
	"errors"
	"fmt"

	"github.com/marketlog/marketlog/schemas"
)

// Unreadable is a whole frame's error: what about it is not as documented.
func Unreadable(format string, a ...any) error {
	return fmt.Errorf("%w: %w", schemas.Undecodable, fmt.Errorf(format, a...))
}

// ReasonOf finds the reason that an error of a codec wraps; Undecodable if there is none.
func ReasonOf(err error) schemas.Reason {
	var reason schemas.Reason
	if errors.As(err, &reason) {
		return reason
	}
	return schemas.Undecodable
}
