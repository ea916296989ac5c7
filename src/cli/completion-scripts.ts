// The scripts that make a shell ask the client what could come next.

export const shells = ['bash', 'zsh', 'fish'] as const

export const completionScripts: Record<(typeof shells)[number], string> = {
  bash: `# Completion for fairlead in bash. Load it with: source <(fairlead completion bash)
_fairlead() {
  local value about
  COMPREPLY=()
  while IFS=$'\\t' read -r value about; do
    if [ "$value" = ':files' ]; then
      compopt -o filenames 2>/dev/null
      while IFS= read -r value; do COMPREPLY+=("$value"); done < <(compgen -f -- "\${COMP_WORDS[COMP_CWORD]#=}")
      return
    fi
    COMPREPLY+=("$value")
  done < <("\${COMP_WORDS[0]}" __complete bash "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -F _fairlead fairlead
`,
  zsh: `#compdef fairlead
# Completion for fairlead in zsh. Load it with: source <(fairlead completion zsh)
_fairlead() {
  local line about
  local -a lines offers
  lines=("\${(@f)$("\${(Q)words[1]}" __complete zsh "\${(@)words[2,CURRENT]}" 2>/dev/null)}")
  if [[ "\${lines[1]}" == ':files' ]]; then
    _files
    return
  fi
  for line in "\${lines[@]}"; do
    [[ -n "$line" ]] || continue
    about="\${line#*$'\\t'}"
    offers+=("\${\${line%%$'\\t'*}//:/\\\\:}\${about:+:$about}")
  done
  _describe 'fairlead' offers
}
compdef _fairlead fairlead
`,
  fish: `# Completion for fairlead in fish. Load it with: fairlead completion fish | source
function __fairlead_offers
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l lines ($words[1] __complete fish $words[2..-1] "$current" 2>/dev/null)
    if test "$lines[1]" = ':files'
        __fish_complete_path "$current"
        return
    end
    printf '%s\\n' $lines
end
complete -c fairlead -f -a '(__fairlead_offers)'
`,
}
