package roles

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/marketlog/marketlog/stream"
	"github.com/marketlog/marketlog/stream/retry"
)

// awaitServers repeats what needs the log or a store until they let it pass, or ctx ends. Roles apart start in any
// order, and one that is started again must not end because a server is just away too. What a server refuses for
// good, as a wrong password, is returned.
func awaitServers(ctx context.Context, log *slog.Logger, do func() error) error {
	backoff := retry.New(200*time.Millisecond, 5*time.Second)
	for {
		err := do()
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil: // a requested stop is not a failure, whatever the interrupted attempt returned
			return ctx.Err()
		case !passing(err):
			return err
		}
		pause := backoff.Next()
		log.Warn("server failed, restarting", "error", err, "retry_in", pause.Round(time.Millisecond))
		if err := retry.Wait(ctx, pause); err != nil {
			return err
		}
	}
}

// passing distinguishes a server that is away from one that rejects the request.
func passing(err error) bool {
	var broken *net.OpError
	var unknown *net.DNSError // a container's name before it runs
	return errors.Is(err, stream.ErrUnavailable) || errors.As(err, &broken) && broken.Op != "listen" || errors.As(err, &unknown) || kerr.IsRetriable(err)
}
