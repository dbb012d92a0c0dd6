package roles

import (
	"github.com/marketlog/marketlog/deploy/instance"
	"github.com/marketlog/marketlog/deploy/supervise"
)

// diskRole watches the disk while the instance runs.
func diskRole(in *instance.Instance) supervise.Role {
	return supervise.Role{Name: "disk", Run: in.Disk.Run}
}

// budgetRole keeps what is embedded within the disk budget.
func budgetRole(in *instance.Instance) supervise.Role {
	return supervise.Role{Name: "disk budget", Run: in.Budget.Run}
}
