package diskbudget

import (
	"errors"
	"io/fs"
	"path/filepath"
	"syscall"
)

// blockSize is what the operating system counts a file's blocks in, whatever the file system's own are.
const blockSize = 512

// Size is what a directory takes on the disk, in bytes: whole blocks of its files. One that does not exist takes nothing; files that go
// meanwhile count or not.
func Size(dir string) (size int64, err error) {
	err = filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return gone(err)
		}
		info, err := entry.Info()
		if err != nil {
			return gone(err)
		}
		if stat, ok := info.Sys().(*syscall.Stat_t); ok {
			size += stat.Blocks * blockSize
		}
		return nil
	})
	return size, err
}

// gone takes out the error that something is not there any more.
func gone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
