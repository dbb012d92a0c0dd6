package engine

import (
	"bufio"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// releaseCode takes what is mapped of the files out of this process's memory, as far as nobody may write to it and the loader did not: code, constants and tables
// of symbols. An open engine has run through 150 MB of its library's code, of which it goes on using less than half. The pages stay in the system's cache of the
// file, from where those that are used again are mapped again, some at once: nothing is lost.
func releaseCode(files ...string) error {
	maps, err := os.Open("/proc/self/smaps")
	if err != nil {
		return fmt.Errorf("finding code in memory: %w", err)
	}
	defer maps.Close()
	var at string // where the mapping is that is described, if it is one of a file's
	own := false  // some of it is not as the file has it: the loader wrote addresses there
	lines := bufio.NewScanner(maps)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		switch {
		case len(fields) >= 5 && strings.Contains(fields[0], "-"):
			// Start-end, rights, offset, device, inode, path: proc_pid_smaps(5).
			at, own = "", false
			if len(fields) > 5 && (fields[1] == "r-xp" || fields[1] == "r--p") && slices.Contains(files, strings.Join(fields[5:], " ")) {
				at = fields[0]
			}
		case at != "" && len(fields) == 3 && (fields[0] == "Anonymous:" || fields[0] == "Swap:"):
			own = own || fields[1] != "0"
			if fields[0] == "Swap:" && !own { // it comes after the other
				if err := release(at); err != nil {
					return err
				}
			}
		}
	}
	return lines.Err()
}

// release takes the pages of a mapping, from-to in hexadecimal, out of memory.
func release(mapping string) error {
	from, to, _ := strings.Cut(mapping, "-")
	start, err := strconv.ParseUint(from, 16, 64)
	if err != nil {
		return fmt.Errorf("reading where code is in memory: %w", err)
	}
	end, err := strconv.ParseUint(to, 16, 64)
	if err != nil {
		return fmt.Errorf("reading where code is in memory: %w", err)
	}
	if _, _, errno := unix.Syscall(unix.SYS_MADVISE, uintptr(start), uintptr(end-start), unix.MADV_DONTNEED); errno != 0 {
		return fmt.Errorf("releasing code: %w", errno)
	}
	return nil
}
