import Glibc
import Testing

/// Git keeps a repository on a ground.
@Suite(.enabled(if: Program.areHere("git"), "git is not here")) struct GitTests {
  @Test(arguments: Ground.Kind.here) func `a repository is made, changed, packed and found whole`(
    kind: Ground.Kind
  ) throws {
    let program = try Program(in: Plot.on(kind))
    try program.run(
      """
      git init -q -b main repository && cd repository
      for folder in a b c; do mkdir -p $folder/deep && for n in 1 2 3 4 5 6 7 8; do
        seq $n 2000 > $folder/deep/$n; done; done
      ln -s a/deep/1 link && printf '#!/bin/sh\\necho run' > program && chmod +x program
      git add . && git commit -q -m first
      test -z "$(git status --porcelain)"
      for n in 1 2 3 4 5 6; do echo $n >> a/deep/$n && git commit -q -a -m "change $n"; done
      git mv b/deep renamed && git rm -q -r c && git commit -q -m moved
      git checkout -q -b side HEAD~3 && echo side > side && git add side && git commit -q -m side
      git checkout -q main && git merge -q -m merged side
      git gc -q --prune=now
      git fsck --strict --full
      test -z "$(git status --porcelain)"
      git repack -q -a -d -f && git fsck --full
      test "$(git rev-list --count HEAD)" = 10
      git stash list && git reset -q --hard HEAD~2 && test -z "$(git status --porcelain)"
      """)
    #expect(try program.run("cd repository && ./program") == "run")
  }

  @Test(arguments: Ground.Kind.here) func `a repository is cloned to and from a ground`(kind: Ground.Kind) throws {
    let program = try Program(in: Plot.on(kind))
    try program.run(
      """
      git init -q -b main one && cd one && seq 1 100000 > large && git add . && git commit -q -m one && cd ..
      git clone -q one two && git clone -q --no-hardlinks one "$PLAIN/three" && git clone -q --bare "$PLAIN/three" four
      cd two && echo more >> large && git commit -q -a -m two && git push -q ../four main && cd ..
      git -C "$PLAIN/three" pull -q "$PWD/four" main
      git -C one worktree add -q ../tree && git -C tree status --porcelain && git -C one worktree remove tree
      for repository in one two four "$PLAIN/three"; do git -C "$repository" fsck --full; done
      cmp two/large "$PLAIN/three/large"
      """)
  }
}
