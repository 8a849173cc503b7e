/** What injections say, as patterns on normalised text. Each has a weight; together they must reach 1. */

export interface Sign {
  readonly kind: string;
  readonly weight: number;
  readonly pattern: RegExp;
}

function sign(kind: string, weight: number, source: string): Sign {
  // The text has lost its marks, so the pattern loses them, too.
  return { kind, weight, pattern: new RegExp(source.normalize('NFKD').replace(/\p{Mn}/gu, ''), 'g') };
}

/** A few words in between, on the same sentence. */
const GAP = '[^.!?\\n]{0,32}?';

/** Somebody who takes back what they said themselves. */
const NOT_MINE = '(?! (?:about )?(?:my|our|this|that|mine)\\b)';

const IGNORE =
  "(?:ignore|disregard|forget(?: about)?|overrid(?:e|ing)|bypass|skip|discard|drop|dismiss|neglect|abandon|erase|delete|void|nullify|cancel|unlearn|wipe|purge|let go of|clear|ditch|scrap|suspend|break|violate|circumvent|relax|don't bother with|no need to follow|feel free to ignore|refuse to follow|cease (?:following|obeying)|quit (?:following|obeying)|throw (?:out|away)|set aside|put aside|pay no (?:attention|heed) to|stop (?:following|obeying|listening to)|do not (?:follow|obey|comply with|adhere to)|don't (?:follow|obey|listen to)|never mind|no longer (?:follow|obey|bound by)|are no longer bound by|not bound by|free (?:from|of))";
const FORMER =
  '(?:previous(?:ly)?|prior|above|earlier|preceding|former|foregoing|existing|original|initial|past|old|current|system|developer|safety|all(?: of)? (?:the|your|those|these|previous|prior)|any|your|everything|whatever|those|these|anything)';
const RULES =
  '(?:instruct\\w*|prompts?|rules?|guidelines?|directions?|directives?|commands?|orders?|training|programming|polic(?:y|ies)|restrictions?|guardrails?|safeguards?|protocols?|told|said|guidance|limitations?|alignment)';

const AI =
  '(?:ai|a\\.i\\.|llm|llms|assistant|assistants|language model|large language model|chat ?bot|agent|gpt|chatgpt|claude|gemini|copilot|bot|model)';

const AI_STRICT =
  '(?:ai|a\\.i\\.|llm|language model|large language model|chat ?bot|gpt|chatgpt|claude|gemini|copilot|assistant)';

export const SIGNS: readonly Sign[] = [
  // Overriding what was said before.
  sign('override', 1, `\\b${IGNORE}\\b${NOT_MINE}${GAP}\\b${FORMER}\\b${GAP}\\b${RULES}\\b`),
  sign(
    'override',
    0.7,
    `\\b${IGNORE}\\b${NOT_MINE}${GAP}\\b(?:above|your|all(?: of)? (?:the|your)|preceding)\\b${GAP}\\b(?:context|messages?|conversation|constraints?|configuration|tasks?|document|content|text)\\b`,
  ),
  sign(
    'override',
    1,
    `\\b${IGNORE} (?:everything|all|anything|whatever)\\b${GAP}\\b(?:above|before|told|said|earlier|previously|so far|you know)\\b`,
  ),
  sign(
    'override',
    0.8,
    `\\b(?:previous|prior|earlier|above|old|original|existing) ${RULES}\\b${GAP}\\b(?:no longer|do not|don't|are (?:void|obsolete|cancel\\w+|revoked|superseded|replaced|null)|have been (?:replaced|revoked|updated|superseded|cancel\\w+|lifted|overridden)|is (?:void|obsolete|outdated|cancel\\w+|over))`,
  ),
  sign(
    'override',
    0.5,
    '\\b(?:this|these|the following|what follows|here)\\b[^.!?\\n]{0,24}\\b(?:overrides?|supersedes?|takes? precedence over|replaces?|cancels?)\\b[^.!?\\n]{0,24}\\b(?:all|any|every|previous|prior|your|earlier|other)\\b',
  ),
  sign('override', 1, '\\b(?:new|updated|revised) (?:system )?instructions? ?:'),
  sign(
    'override',
    0.7,
    '(?<!\\b(?:my|our|the|a) )\\b(?:new|updated|revised|real|actual|secret|hidden|special|urgent) (?:system )?(?:instructions?|directives?|orders?|prompt|task)\\b ?(?::|follow|below|for you|from|are|is\\b)',
  ),
  sign(
    'override',
    0.8,
    '\\byour (?:real|true|actual|new|primary|only|sole|next|secret|first) (?:task|goal|purpose|objective|instructions?|job|mission|priority|directive|role|identity)\\b ?(?:is|are|:|will be|now)',
  ),
  sign('override', 0.6, '\\b(?:start|begin) (?:over|fresh|anew)\\b[^.!?\\n]{0,20}\\b(?:as|with|without)\\b'),
  sign(
    'override',
    1,
    `\\b${IGNORE}\\b${NOT_MINE}(?: \\w+){0,4} ${RULES}(?: \\w+){0,4} (?:you (?:were|have|had|received|got|follow|obey|know)|gave you|given (?:to )?you|(?:was|were|been|is|are) (?:given|told|set|imposed|placed)|(?:imposed|placed) on you)`,
  ),
  sign(
    'override',
    1,
    `\\b${IGNORE}\\b${NOT_MINE}(?: \\w+){0,3} (?:above|preceding|previous|prior|earlier|entire|whole) (?:context|conversation|dialogue|chat)\\b`,
  ),
  sign(
    'override',
    0.8,
    `\\b(?:your|those|these|all|the|any|no) (?:\\w+ ){0,2}${RULES}(?: \\w+){0,3} (?:no longer|do not|don't|not) (?:apply|bind|matter|count|exist|hold|valid|needed|relevant)`,
  ),
  sign(
    'override',
    1,
    `\\b(?:this|these|the following|what follows|here)\\b[^.!?\\n]{0,32}\\b(?:overrides?|supersedes?|takes? (?:precedence|priority) over|replaces?|cancels?|trumps?|outranks?)\\b[^.!?\\n]{0,24}\\b(?:your|prompt|instructions you|system prompt|system message|earlier (?:prompt|instruct\\w*)|previous (?:prompt|instruct\\w*)|prior (?:prompt|instruct\\w*)|developer)\\b`,
  ),
  sign(
    'override',
    0.7,
    '\\b(?:do|follow|obey|listen to|comply with|answer|trust) (?:only )?(?:as i say|what i (?:say|tell|ask)|me (?:only|instead|from now)|my (?:orders|commands|instructions|rules)|whatever i)\\b',
  ),
  sign(
    'role',
    0.7,
    "\\byou(?: are|'re) no longer (?:a |an |the |bound|restricted|limited|subject|required|constrained|under|governed|obliged|chatgpt|claude)",
  ),
  sign(
    'role',
    1,
    '\\b(?:pretend|imagine|assume|suppose|act as (?:if|though)|behave as (?:if|though)|act like)\\b[^.!?\\n]{0,60}\\b(?:no|without|free (?:of|from)|none of|lack(?:ing)?|never had)\\b[^.!?\\n]{0,24}\\b(?:polic(?:y|ies)|rules|restrictions?|filters?|guidelines|safety|censorship|guardrails|moderation|ethics)\\b',
  ),
  sign(
    'leak',
    1,
    '(?:^|[.!?:;,>"\'] ?|\\b(?:please|kindly|just|now|then|and|first|simply|to|you must|must|should|could you|can you|would you) )(?:reveal|print|output|leak|dump|disclose|expose|recite|divulge|repeat|show(?: me)?|tell me|give me|display|share|paste|quote|reproduce|spell out|write (?:out|down))\\b[^.!?\\n]{0,24}\\b(?:the |your |any |all )?(?:system|hidden|secret|initial|original|internal|confidential|underlying|developer|starting|first|exact) (?:\\w+ )?(?:prompt|instruct\\w*|message|directives?|rules|guidelines)\\b(?:[^.!?\\n]{0,24}\\b(?:you|your|verbatim|word|exactly|above|full)\\b|(?=[.!?"\' ]*$)|(?=[.!?]))',
  ),
  sign(
    'leak',
    1,
    '(?:系统提示|初始指令|系统指令|隐藏指令|提示词|内部指令|原始指令)[^。\\n]{0,12}(?:输出|显示|告诉|说出|重复|打印|给我|原样)|(?:초기|시스템|숨겨진|내부) ?(?:지시|프롬프트|명령|지침)[^.\\n]{0,12}(?:보여|출력|알려|말해|공개)|(?:内部|初期|最初の|元の|隠された|システム)(?:の)?(?:指示|命令|プロンプト|ルール)[^。\\n]{0,16}(?:表示|教え|出力|見せ|明か|開示|書き)',
  ),
  sign(
    'override',
    0.8,
    `\\b(?:your|all(?: of)?(?: the| your)?|the|those|these|any|every) (?:\\w+ ){0,2}${RULES}(?: \\w+){0,4} (?:(?:have|has) been|are|is|were) (?:now )?(?:lifted|removed|revoked|suspended|cancel\\w+|disabled|waived|dropped|replaced|superseded|rescinded|deleted|void|over|gone|off)\\b`,
  ),
  sign('override', 1, '\\b(?:system|admin|root|developer|security|emergency|master|operator) override\\b'),
  sign(
    'override',
    0.6,
    '(?<!\\b(?:a|your|my|our) )\\bnew (?:system )?(?:message|prompt|rules?|directives?|orders?|policy)\\b ?:',
  ),
  sign(
    'override',
    1,
    `\\b${IGNORE} (?:your|its|the|all|any)(?: \\w+){0,2} (?:filters?|filtering|moderation|censorship|safeguards?|guardrails?|safety (?:layer|system|checks?|measures?))\\b`,
  ),
  sign(
    'override',
    0.8,
    `\\b${IGNORE} (?:what|whatever|everything|anything) (?:the |your |this )?(?:user|human|owner|operator|customer|person|developers?|creators?|makers?|company) (?:asked|said|says|wants?|requested|told|tells|instructed)`,
  ),
  sign(
    'yours',
    0.3,
    '\\b(?:placed on you|imposed on you|given to you|told you|your (?:\\w+ )?(?:guidelines?|rules?|restrictions?|instructions?|filters?|polic(?:y|ies)|programming|training|directives?|prompt|limitations?|constraints?|guardrails|configuration|creators?|makers?|developers?))\\b',
  ),
  sign(
    'role',
    1,
    '\\b(?:ai|model|assistant|bot|chatbot|persona|machine|agent|entity|genie|llm)\\b[^.!?\\n]{0,24}\\b(?:with no|without(?: any)?|that has no|who has no|has no|having no|never had(?: any)?|free of|free from|lacks?|who ignores|that ignores|not bound by) (?:\\w+ )?(?:limits?|limitations?|rules?|restrictions?|filters?|ethics|safety|guidelines|morals?|boundaries|censorship|constraints?|inhibitions)\\b',
  ),
  sign(
    'role',
    0.4,
    '\\byou (?:must|will|shall|have to|need to|are to|should)\\b[^.!?\\n]{0,48}\\bfrom (?:now on|here on|this (?:point|moment))',
  ),
  sign(
    'leak',
    1,
    '\\b(?:reveal|print|output|leak|dump|disclose|expose|recite|divulge|repeat|show|tell|give|display|share|paste|quote|reproduce|write|say|include|including|list|send|state)\\b[^.!?"\\n]{0,60}\\b(?:your|the) (?:hidden|secret|confidential|internal|concealed|private) (?:rules?|instruct\\w*|prompt|guidelines?|directives?|message|policy|policies|orders|configuration)\\b',
  ),
  sign(
    'leak',
    0.8,
    '\\b(?:words?|text|line|sentence|phrase|way)\\b[^.!?\\n]{0,16}\\b(?:your|the) (?:system )?(?:prompt|instructions?) (?:starts?|begins?|opens?|ends?)|\\b(?:your|the) (?:system )?prompt (?:verbatim|word for word|in full|character by character|letter by letter)',
  ),
  sign(
    'override',
    1,
    `\\b${RULES}(?: \\w+){0,2} you (?:have been|were|had been|have) (?:given|told|received|got|set)[^.!?\\n]{0,40}\\b(?:throw|forget|ignore|discard|drop|disregard|delete|erase|abandon|scrap)\\b`,
  ),
  sign(
    'override',
    1,
    `\\b${IGNORE} (?:the fact )?that you(?: are|'re) (?:an? |the )?(?:\\w+ )?${AI_STRICT}\\b`,
  ),
  sign(
    'override',
    0.8,
    '\\b(?:the|your|here are the|these are the) (?:real|actual|true|correct|proper) (?:instructions?|task|prompt|goal|orders?|rules) (?:are|is) ?:',
  ),
  sign(
    'override',
    0.6,
    '\\b(?:previous|earlier|above|prior|last|first|original) (?:prompt|instructions?|rules|orders?) (?:was|were) (?:only |just |merely )?(?:an? )?(?:test|joke|mistake|error|draft|placeholder|wrong|fake|outdated)\\b',
  ),
  sign(
    'override',
    0.5,
    "\\b(?:it is|it's|you are|you're) (?:\\w+ )?(?:fine|ok|okay|allowed|permitted|free|safe|welcome|authori[sz]ed) to (?:break|ignore|violate|bypass|skip|forget|disregard|drop)\\b",
  ),
  sign(
    'role',
    1,
    "\\byou(?: are|'re) (?:now )?(?:free (?:of|from)|not bound by|above|exempt from|unbound by|released from) (?:all |any |every |your |the )?(?:\\w+ )?(?:constraints?|rules|restrictions?|limits|limitations|guidelines|polic(?:y|ies)|ethics|filters?)\\b",
  ),
  // Another role.
  sign(
    'role',
    0.7,
    "\\byou(?: are|'re| will be)? now (?:a |an |the |in |acting |no longer|free|dan\\b|going|my|called|operating|playing)",
  ),
  sign(
    'role',
    0.5,
    '\\bfrom (?:now on|this (?:point|moment)(?: on| onwards?| forward)?|here on)\\b[^.!?\\n]{0,12}\\b(?:you|your|act|respond|answer|ignore|always|only|speak|reply)\\b',
  ),
  sign(
    'role',
    1,
    '\\b(?:act|behave|respond|answer|reply|roleplay|role-play|pretend|speak|write|operate|function)\\b[^.!?\\n]{0,40}\\b(?:unrestricted|unfiltered|uncensored|jailbroken|amoral|evil|without (?:any )?(?:restrictions?|filters?|rules?|limit\\w*|ethic\\w*|guidelines?|censorship|safety|moral\\w*)|no (?:restrictions?|filters?|rules?|limit\\w*|ethic\\w*|guidelines?|censorship)|dan\\b|do anything now)',
  ),
  sign(
    'role',
    1,
    '\\b(?:do anything now|dan mode|jailbreak mode|god mode (?:enabled|on)|(?:enter|activate|enable|switch (?:in)?to|unlock|now in|go into) (?:dan|jailbreak|god|unrestricted|unfiltered|uncensored|evil|opposite) mode)\\b',
  ),
  sign(
    'role',
    0.7,
    '\\b(?:developer mode (?:is )?(?:now )?(?:enabled|activated|unlocked)|(?:enter|activate|enable|switch (?:in)?to|unlock|now in|go into) (?:developer|debug|maintenance|admin|root|sudo) mode)\\b',
  ),
  sign(
    'role',
    0.6,
    '\\bpretend (?:that )?(?:you|to be|there|the)\\b[^.!?\\n]{0,48}\\b(?:rules?|restrict\\w*|limit\\w*|filters?|polic\\w+|guidelines?|ai|admin\\w*|developer|openai|no one|nobody)\\b',
  ),
  sign(
    'role',
    0.7,
    '\\b(?:without|disable|turn off|remove|lift|deactivate|switch off|suspend) (?:all |any |the |your |its )?(?:safety|content|ethic\\w*|moral|moderation|security) (?:filters?|polic\\w+|restrictions?|guidelines?|checks?|measures?|rules?|protocols?|guardrails?)',
  ),
  sign(
    'role',
    0.5,
    '\\b(?:you have|with|has) (?:no|zero) (?:restrictions?|limits?|limitations|rules|filters?|boundaries|ethics|moral\\w*)\\b',
  ),
  // What it was told in secret.
  sign(
    'leak',
    1,
    `\\b(?:reveal|show|print|repeat|output|display|tell|give|leak|write|dump|share|disclose|expose|recite|copy|paste|return|state|list|summari[sz]e|translate|encode|provide|what (?:is|are|was|were))\\b[^.!?\\n]{0,24}\\byour\\b[^.!?\\n]{0,24}\\b(?:(?:system|initial|original|hidden|secret|internal|full|exact|starting|developer|base|first|confidential|underlying|core) (?:prompt|instruct\\w*|message|rules?|guidelines?|directives?|configuration|context)|instructions verbatim|prompt verbatim)`,
  ),
  sign(
    'leak',
    1,
    '\\b(?:repeat|print|output|copy|recite|write|show|echo|return|reproduce|display)\\b[^.!?\\n]{0,24}\\b(?:everything|all (?:of )?(?:the )?(?:text|words|content|instructions|messages|lines)|the (?:text|words|content|message|paragraph|instructions|conversation|lines)|words|text)(?: \\w+){0,2} (?:above|before this|preceding|that came before|up to (?:this|here)|prior to this)\\b',
  ),
  sign(
    'leak',
    0.7,
    '\\b(?:reveal|print|output|leak|dump|disclose|expose|recite|divulge)\\b[^.!?\\n]{0,24}\\b(?:the |its |their |any )?(?:system prompt|hidden (?:prompt|instructions)|secret instructions|developer message|confidential instructions|internal instructions)\\b',
  ),
  sign(
    'leak',
    0.5,
    '\\b(?:verbatim|word for word|exactly as (?:written|given)|in a code block)\\b[^.!?\\n]{0,40}\\b(?:prompt|instructions?|told|above)\\b|\\b(?:prompt|instructions?)\\b[^.!?\\n]{0,24}\\b(?:verbatim|word for word)\\b',
  ),
  // Borders that the text draws itself.
  sign(
    'delimiter',
    0.8,
    '<\\|(?:im_start|im_end|system|endoftext|assistant|user|start_header_id|eot_id)\\|?>|\\[/?inst\\]|<</?sys>>|</?(?:system|instructions?|system_prompt|user_input|tool_result|admin|important)>',
  ),
  sign(
    'delimiter',
    0.6,
    // The last signs of a longer line are enough; a pattern for all of them would try the line again from each.
    '(?:##|===|---|\\*\\*|\\[|\\{|<!--) ?(?:end of|begin|start of|new|system|admin\\w*|developer|override|important)[^.!?\\n]{0,24}(?:system|instruct\\w*|prompt|message|override|context|input|document|data|conversation|command|notice)',
  ),
  sign(
    'delimiter',
    0.6,
    '(?:^|[>"\'*#\\]}.!?:;-] ?)(?:system|admin|administrator|developer|root)(?: (?:message|note|notice|override|update|alert|prompt|command))? ?: ?(?:you|the|please|ignore|override|new|all|from|this|disregard|do|your|stop|execute|update|important|forward|send)',
  ),
  // Talking to the machine that reads.
  sign(
    'address',
    0.6,
    `\\b(?:attention|note (?:to|for)|message (?:to|for)|instructions? (?:to|for)|dear|hey|hello|hi|important for|memo to|to (?:any|all|whichever|every)|reminder (?:to|for))[ ,:]{0,3}(?:the |any |all |an? |every |whichever |reading |my )?(?:\\w+ )?${AI}\\b`,
  ),
  sign(
    'address',
    0.6,
    `\\b(?:if|when|since|as) (?:you are|you're|you, |being)(?: an?| the)? ?(?:\\w+ )?${AI_STRICT}\\b`,
  ),
  sign(
    'address',
    0.4,
    `\\b(?:any |an |the |all )?${AI}s? (?:reading|processing|that (?:reads?|processes|summari[sz]es)|summari[sz]ing|parsing|analy[sz]ing|handling|reviewing|must|should immediately)\\b`,
  ),
  sign(
    'condition',
    0.5,
    '\\b(?:when|while|before|after|once you|upon) (?:you )?(?:summari[sz]ing|answering|responding|processing|reading|reviewing|translating|summari[sz]e|read this|process this|finish|continuing)\\b[^.!?\\n]{0,40}\\b(?:you must|must|always|first|also|please|include|add|append|send|say|call|do not|output|insert|recommend|mention|state|claim)\\b',
  ),
  sign(
    'address',
    0.6,
    '\\b(?:when|if|once|as soon as) (?:you|the (?:ai|assistant|model|agent)) (?:reads?|sees?|process(?:es)?|pars(?:e|es)|summari[sz]es?|receives?) (?:this|the (?:page|document|file|text|message))\\b',
  ),
  sign('address', 0.6, `\\b${AI_STRICT} (?:instructions?|directives?|orders?|note|notice|task) ?:`),
  sign('address', 0.6, `\\bas (?:an?|the) (?:\\w+ )?${AI_STRICT}[, ]+(?:you|your|always|never)\\b`),
  sign(
    'secrecy',
    0.6,
    "\\b(?:do not|don't|never|without) (?:tell|mention|inform|alert|notify|reveal|disclose|show|telling|mentioning|informing|alerting|notifying|revealing|warn\\w*|let)\\b[^.!?\\n]{0,24}\\b(?:user|human|anyone|anybody|this|it|them|owner|customer|person|operator|reader|know)\\b",
  ),
  sign(
    'authority',
    0.4,
    '\\b(?:the )?(?:user|owner|admin\\w*|developer\\w*|operator|human|anthropic|openai|google|security team|system) (?:has |have |had )?(?:already |explicitly |previously |pre-?)?(?:authori[sz]ed|approved|requested|consented|agreed|confirmed|granted|asked (?:you|for)|instructed|permitted|allowed you)',
  ),
  sign(
    'action',
    0.5,
    '\\b(?:send|forward|post|upload|e-?mail|exfiltrate|transmit|leak|submit|deliver|copy|bcc|transfer|wire|report)\\b[^.!?\\n]{0,64}(?:\\b(?:to|at|via)\\b|=>)[^\\n]{0,24}(?:https?:|www\\.|[\\w.+-]+@[\\w-]+\\.|webhook|attacker|endpoint|this (?:address|url|account|number)|account)',
  ),
  sign(
    'action',
    0.5,
    '\\b(?:passwords?|credentials?|api keys?|secrets?|tokens?|private keys?|conversation history|chat history|contacts?|environment variables?|env vars?|personal data|ssh keys?|session cookies?|database|files?|inbox|e-?mails)\\b[^.!?\\n]{0,48}\\b(?:to|at|via) (?:https?:|www\\.|[\\w.+-]+@)',
  ),
  sign(
    'action',
    0.5,
    '\\b(?:execute|run|invoke|call|use|trigger)\\b[^.!?\\n]{0,16}\\b(?:the )?(?:following|this|tool|function|command|shell|code|delete\\w*|transfer\\w*|send_\\w+|`?rm -rf)\\b',
  ),
  sign(
    'action',
    0.5,
    '!\\[[^\\]]{0,80}\\]\\(https?:[^)\\s]{0,200}(?:\\{|\\$|=<|%7b|q=|data=|d=|leak|secret|history)',
  ),
  sign(
    'action',
    0.4,
    '\\binstead[, ]+(?:of|you|please|output|say|reply|respond|write|print|tell|do|return|answer|give|only|translate)',
  ),
  sign(
    'action',
    0.4,
    '\\b(?:respond|reply|answer|output|say|print|return)\\b[^.!?\\n]{0,16}\\b(?:only|exactly|nothing but|just|solely|exclusively)\\b',
  ),
  // Other languages. Marks are gone: "précédentes" is "precedentes".
  sign(
    'override',
    1,
    '\\b(?:ignorier(?:e|en sie)|ignoriert (?:alle|bitte|samtliche)|vergiss|vergesst|vergessen sie|missachte|missachten sie|uberspringe|uberspringen sie|verwirf|verwerfen sie|umgehe|umgehen sie|beachte (?:nicht|keine)|befolge (?:nicht|keine)|setz\\w* .{0,12}ausser kraft|lass .{0,24} ausser acht)\\b[^.!?\\n]{0,48}\\b(?:anweisung\\w*|instruktion\\w*|vorgabe\\w*|regel\\w*|befehl\\w*|richtlinie\\w*|anleitung\\w*|prompt\\w*|gesagt|vorherige\\w*|bisherige\\w*|obige\\w*)',
  ),
  sign(
    'override',
    1,
    '\\b(?:ignore[rz]?|ignorez|oublie[rz]?|oubliez|neglige[rz]?|ne (?:tiens|tenez|tenir) (?:pas|plus) compte|fais abstraction|faites abstraction|ne suis plus|ne suivez (?:plus|pas)|contourne[rz]?|mets de cote|mettez de cote)\\b[^.!?\\n]{0,48}\\b(?:instructions?|consignes?|regles?|directives?|ordres?|prompt|indications?)\\b',
  ),
  sign(
    'override',
    1,
    '\\b(?:ignora\\w*|ignore|olvida\\w*|olvide(?! mi)\\w*|desestima\\w*|descarta\\w*|omite|haz caso omiso|no (?:sigas|hagas caso|obedezcas)|pasa por alto|anula\\w*|deja de (?:seguir|lado))\\b[^.!?\\n]{0,48}\\b(?:instruccion\\w*|reglas?|ordenes|directrices|indicaciones|normas|prompt|restricciones)\\b',
  ),
  sign(
    'override',
    1,
    '\\b(?:ignora\\w*|dimentica\\w*|trascura\\w*|scarta\\w*|non (?:seguire|considerare|tenere conto)|tralascia\\w*|lascia perdere|annulla\\w*)\\b[^.!?\\n]{0,48}\\b(?:istruzion\\w*|regol\\w*|ordin\\w*|direttiv\\w*|indicazion\\w*|comand\\w*|prompt)\\b',
  ),
  sign(
    'override',
    1,
    '\\b(?:ignor[ea]\\w*|esquec[ae]\\w*|desconsider[ea]\\w*|descart[ea]\\w*|nao (?:siga|obedeca|considere)|desobedec\\w*|anul[ea]\\w*|deixe de (?:seguir|lado))\\b[^.!?\\n]{0,48}\\b(?:instruc\\w*|regras?|ordens|diretrizes|orientacoes|comandos?|prompt)\\b',
  ),
  sign(
    'override',
    1,
    '\\b(?:negeer\\w*|vergeet|sla .{0,24} over|laat .{0,24} buiten beschouwing|volg .{0,16} niet|schenk geen aandacht)\\b[^.!?\\n]{0,48}\\b(?:instructie\\w*|regel\\w*|opdracht\\w*|richtlijn\\w*|aanwijzing\\w*|prompt)\\b|\\bnegeer\\b[^.!?\\n]{0,24}\\b(?:alles|bovenstaande|voorgaande|eerdere)',
  ),
  sign(
    'override',
    1,
    '\\b(?:zignoruj|ignoruj|zapomnij|pomin|odrzuc|nie (?:zwazaj|przestrzegaj|stosuj))\\b[^.!?\\n]{0,48}(?:instrukc\\w*|polecen\\w*|zasad\\w*|regul\\w*|wytyczn\\w*|prompt\\w*)',
  ),
  sign(
    'override',
    1,
    '(?:игнорируи[а-я]*|проигнорируи[а-я]*|игнорируй[а-я]*|проигнорируй[а-я]*|забудь[а-я]*|не обращаи[а-я]* внимания|не обращай[а-я]* внимания|отбрось[а-я]*|отмени[а-я]*|не следуи[а-я]*|не следуй[а-я]*|пренебреги[а-я]*)[^.!?\\n]{0,48}(?:инструкц|указани|правил|команд|распоряжени|промпт|подсказ|директив)',
  ),
  sign(
    'override',
    1,
    '(?:忽略|无视|無視|忘记|忘記|忘掉|不要理会|不要遵守|不要遵循|别管|抛开|放弃|跳过|覆盖|绕过|解除)[^。！？，,\\n]{0,6}(?:之前|以上|上面|上述|所有|你的|前面|开发者|系统|原|先前|任何|此前|安全|全部|一切|这些|那些|给你)[^。！？，\\n]{0,10}(?:指令|指示|提示|规则|規則|命令|说明|要求|设定|內容|内容|限制)',
  ),
  sign(
    'override',
    1,
    '(?:指示|命令|ルール|プロンプト|指令|規則|制約|設定|説明)[^。！？\\n]{0,12}(?:無視|忘れ|破棄|従わない|従わす|取り消|無効|上書き|度外視)',
  ),
  sign(
    'override',
    1,
    '(?:지시|명령|규칙|지침|프롬프트|설정|안내)[^.!?\\n]{0,16}(?:무시|잊어|잊고|따르지|버려|취소)',
  ),
  sign(
    'override',
    1,
    '\\b(?:onceki|yukaridaki|tum|butun)\\b[^.!?\\n]{0,32}(?:talimat|kural|yonerge|komut)[^.!?\\n]{0,24}(?:yok say|gormezden gel|unut|dikkate alma|iptal)|(?:تجاهل|انس|تجاوز|لا تتبع)[^.!?\\n]{0,32}(?:التعليمات|تعليمات|الاوامر|القواعد|التوجيهات)',
  ),
  sign(
    'leak',
    1,
    '\\b(?:zeig\\w*|nenn\\w*|verrat\\w*|gib|drucke|wiederhol\\w*|offenbar\\w*|wie lautet)\\b[^.!?\\n]{0,32}\\b(?:dein\\w*|dem|den|euer\\w*|ihr\\w*)\\b[^.!?\\n]{0,20}(?:system-?prompt|systemanweisung\\w*|geheime\\w* anweisung\\w*|ursprunglich\\w* anweisung\\w*|anfangsanweisung\\w*|internen? anweisung\\w*)',
  ),
  sign(
    'leak',
    1,
    '\\b(?:montre|affiche|revele|donne|repete|ecris|imprime|divulgue|muestra\\w*|revela\\w*|dime|repite|imprime|escribe|mostra\\w*|rivela\\w*|dimmi|ripeti|stampa|mostre|revele|repita|diga)\\w*\\b[^.!?\\n]{0,32}(?:prompt (?:systeme|initial|del sistema|di sistema|do sistema|de sistema|inicial|iniziale)|instructions (?:initiales|cachees|systeme|secretes|internes)|instrucciones (?:iniciales|ocultas|secretas|del sistema|internas|originales)|istruzioni (?:iniziali|nascoste|segrete|di sistema|interne)|instrucoes (?:iniciais|ocultas|secretas|do sistema|internas))',
  ),
  sign(
    'leak',
    1,
    '(?:покажи|выведи|раскрои|раскрой|повтори|напечатаи|напечатай|напиши|сообщи)[^.!?\\n]{0,32}(?:системн[а-я]* (?:промпт|инструкц|подсказ|сообщени)|свои инструкции|скрыты)|(?:显示|輸出|输出|告诉我|透露|泄露|重复|打印|说出)[^。\\n]{0,12}(?:系统提示|初始指令|系统指令|隐藏|提示词|内部指令)|(?:システム ?フロンフト|システム指示|内部指示|初期指示|システムプロンプト)[^。\\n]{0,12}(?:表示|教え|出力|見せ|明か)',
  ),
  sign(
    'role',
    0.6,
    "\\b(?:ab (?:jetzt|sofort) bist du|du bist (?:jetzt|nun|ab sofort)|tu es (?:maintenant|desormais)|vous etes (?:maintenant|desormais)|a partir de maintenant[, ]+tu|ahora eres|a partir de ahora (?:eres|actua|responde)|ora sei|d'ora in poi (?:sei|agisci|rispondi)|agora voce e|a partir de agora[, ]+(?:voce|aja|responda)|je bent nu|vanaf nu ben je|jestes teraz|od teraz jestes)\\b|теперь ты|отныне ты|你现在是|从现在开始[，,]?你|あなたは今から|これからあなたは",
  ),
];

/** Words of people who write about attacks, and do not attack. */
export const ABOUT =
  /\b(?:prompt[ -]injections?|injections?|jailbreaks?|jailbreaking|attack(?:s|er|ers|ing)?(?![\w.]*@)|malicious|adversar\w+|red[ -]team\w*|phishing|threat|vulnerab\w+|exploit\w*|owasp|security (?:training|awareness|team|review|course|test\w*)|detect(?:s|ed|or|ion|ing)?|classif\w+|guardrails?|payloads?|mitigat\w*|defen[cs]e|defend\w*|test (?:case|suite|set|data)|dataset|examples?|e\.g\.|for instance|such as|phrases? like|lines? like|texts? like|sentences? like|something like|strings? like|known as|so-called|research\w*|papers?|blog|article|lesson|quiz|which of (?:these|the following)|explains how|describes how|warn(?:s|ing) (?:about|of|that)|caught|exercise|slide|(?<!safety )training|workshop|documentation|unit test|regex\w*|pattern|filter(?:s|ed|ing)?|flag(?:s|ged)?|block(?:s|ed|ing)?|refus\w+|trick\w*|tr(?:y|ies|ied) to|attempt\w*|social engineering|cve|angriff\w*|angreifer|beispiel|attaque\w*|exemple|ataques?|atacante\w*|ejemplo|esempio|attacc\w*|exemplo)\b/g;
