package supervise

import (
	"context"
	"errors"
)

// Stopped is nil if all that ended a start was being asked to stop while it waited.
func Stopped(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return nil
	}
	return err
}
