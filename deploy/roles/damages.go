package roles

import (
	"context"

	"github.com/marketlog/marketlog/deploy/instance"
	"github.com/marketlog/marketlog/deploy/supervise"
)

// damagesRole writes the damages of the log into the log, whether anything is fed to it or not.
func damagesRole(in *instance.Instance) supervise.Role {
	return supervise.Role{Name: "damages", Run: func(ctx context.Context) error {
		if err := in.WriteGaps(ctx, in.DamageGaps()); err != nil {
			return err
		}
		<-ctx.Done()
		return nil
	}}
}
