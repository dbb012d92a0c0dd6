package schemas

// ArchiveClass says what an archive of the log does with the records of a topic.
type ArchiveClass int

const (
	// ArchiveNever leaves a topic out: it holds what is about people, or what another topic holds whole.
	ArchiveNever ArchiveClass = iota
	// ArchiveKept keeps every record: it can be got nowhere again.
	ArchiveKept
	// ArchiveBudget keeps records while the archive is within its bound; the oldest are deleted first.
	ArchiveBudget
)

// BudgetTopics are the topics of which an archive keeps only as much as there is room for.
func BudgetTopics() (names []string) {
	for _, topic := range Topics {
		if topic.Archive == ArchiveBudget {
			names = append(names, topic.Name)
		}
	}
	return names
}

// Irreplaceable reports whether the records of a topic stay in the archive whatever room there is: what sources and operators stated, which nothing
// else can be made into again.
func (t Topic) Irreplaceable() bool { return !t.Derived && t.Retention == 0 }
