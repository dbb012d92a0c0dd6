package diskguard

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// statfs asks the operating system what unprivileged processes may still take.
func statfs(dir string) (Space, error) {
	var disk unix.Statfs_t
	if err := unix.Statfs(dir, &disk); err != nil {
		return Space{}, fmt.Errorf("measuring the disk of %s: %w", dir, err)
	}
	return Space{Free: int64(disk.Bavail) * int64(disk.Bsize), Total: int64(disk.Blocks) * int64(disk.Bsize)}, nil
}

// allocate makes a file of a size whose blocks are taken: zeros, since not every file system can reserve blocks.
func allocate(name string, size int64) error {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	zeros := make([]byte, 1<<20)
	for left := size; left > 0 && err == nil; left -= int64(len(zeros)) {
		_, err = f.Write(zeros[:min(left, int64(len(zeros)))])
	}
	return errors.Join(err, f.Close())
}
