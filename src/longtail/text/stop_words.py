"""Short lists of words that say nothing about a text's subject, for the languages that have stems.

Articles, pronouns, prepositions, conjunctions and forms of "be" and "have", as any grammar has them. Words that may
name a subject are not among them, so the lists are shorter than others.
"""

from __future__ import annotations

_LISTS = {
    "danish": """
        af alle at blev blive bliver da de den denne deres det dette dig din disse dog du efter eller en end er et for
        fra ham han hans har havde have hende hendes her hos hun hvad hvis hvor hvordan hvorfor ikke ind jeg jer jo
        kan kunne man mange med meget men mig min mine mod ned nogle nogen noget nu når og også om op os over på sin
        sig skal skulle som sådan til ud under var vi vil ville være været
    """,
    "dutch": """
        aan al als alle alles ben bij bent daar dan dat de deze die dit doch doen door dus een en er ge geen had hadden
        heb hebben heeft hem het hier hij hoe hun iemand iets ik in is ja je jij kan kon kunnen maar me meer men met
        mij mijn moet na naar niet niets nog nu of om onder ons ook op over te tegen toch toen tot u uit uw van veel
        voor waar want waren was wat we wel werd wezen wie wij wil worden wordt zal ze zei zelf zich zij zijn zo zonder
        zou
    """,
    "english": """
        about above after again against all also am an and any are as at be because been before being below between
        both but by can cannot could did do does doing down during each few for from further had has have having he her
        here hers herself him himself his how if in into is it its itself just me more most my myself no nor not of off
        on once only or other our ours ourselves out over own same she should so some such than that the their theirs
        them themselves then there these they this those through to too under until up very was we were what when where
        which while who whom why will with would you your yours yourself yourselves
    """,
    "finnish": """
        ei eivät ellei eli emme en ennen että et ette hän hänen hänet häntä he heidän heidät heitä ja jo jos joka
        jolla jolle jonka jos jossa josta jota jotka jotta kaikki kanssa keiden ketkä koska kuin kuinka kuka kun me
        meidän meidät meille meitä mikä miksi millä minkä minä minun minut minua missä mistä mitä mukaan muut mutta
        myös ne niiden niille niin niissä niistä niitä noiden nuo nyt nämä näiden näissä näitä olemme olen olet olette
        oli olimme olin olisi olit olivat olla olleet ollut on ovat poikki se sekä sen siellä siihen siinä siitä sille
        sillä sinun sinut sinä sinua sitä tai te teidän teitä tuo tuon tämä tämän tässä tästä tätä vaan vai vaikka
        vielä voi yli
    """,
    "french": """
        ai aie aient ait as au aucun aura auraient aurait aurez auront aussi autre aux avaient avais avait avec avez
        avoir avons ayant car ce ceci cela celle celles celui ces cet cette ceux chez ci comme comment dans de depuis
        des donc dont du elle elles en entre es est et étaient étais était étant été être eu eux fait furent fut ici
        il ils je la là le les leur leurs lui ma mais me même mes moi mon ne ni nos notre nous on ont or où par pas
        pendant plus pour puis qu quand que quel quelle quelles quels qui quoi sa sans se sera seraient serait seront
        ses si soit sommes son sont sous suis sur ta te tes toi ton tous tout toute toutes très tu un une vers voici
        vos votre vous
    """,
    "german": """
        aber alle allem allen aller alles als also am an andere anderem anderen anderer anderes auch auf aus bei beim
        bin bis bist da damit dann das dass dein deine deinem deinen deiner dem den denen denn der deren des dessen
        dich die dies diese diesem diesen dieser dieses dir doch dort du durch ein eine einem einen einer eines er es
        etwas euch euer eure für gegen haben habe hat hatte hatten hier hin hinter ich ihm ihn ihnen ihr ihre ihrem
        ihren ihrer ihres im in indem ins ist ja jede jedem jeden jeder jedes jene kann kein keine keinem keinen keiner
        können könnte man manche mein meine meinem meinen meiner mich mir mit muss nach nicht nichts noch nun nur ob
        oder ohne sehr sein seine seinem seinen seiner seines seit selbst sich sie sind so solche soll sollte sondern
        sonst sowie über um und uns unser unsere unter vom von vor war waren was weil weiter welche welchem welchen
        welcher welches wenn wer werde werden wie wieder will wir wird wo wollen worden würde würden während zu zum zur
        zwar zwischen
    """,
    "hungarian": """
        ahhoz ahogy ahol aki akik akkor alatt által általában amely amelyek amelyet ami amíg amikor át az azért azok
        azon azonban azt aztán azzal be bele csak de egy egyéb egyes együtt el elő ebben ekkor ennek erre ez ezek ezen
        ezért ezt ezzel fel felé hanem ha hogy hogyan igen így illetve ill ilyen ismét is itt kell kellett
        keresztül ki kívül között közül le legyen lehet lenne lenni lesz lett maga még meg mely melyek mert mi miért
        mikor milyen mind minden mint mit mivel most már más nagyon ne nekem neki nem nincs olyan ott össze ők őket ön
        pedig sem saját során szerint szinte talán te tehát több továbbá tovább úgy után vagy vagyis
        valaki valami van vannak vele vissza viszont volna volt voltak
    """,
    "italian": """
        abbia abbiamo abbiano ad agli ai al alla alle allo anche avere aveva avevano avuto che chi ci coi col come con
        contro cui da dagli dai dal dalla dalle dallo degli dei del della delle dello dentro di dove ed era erano essa
        esse essendo essere essi esso fa fino fra gli ha hai hanno ho il in io la là le lei li lo loro lui ma me mentre
        mi mia mie miei mio ne negli nei nel nella nelle nello noi non nostra nostre nostri nostro od ogni oppure per
        perché più poi può qual quale quali quando quanto quella quelle quelli quello questa queste questi questo qui
        sarà saranno se sei si sia siamo siano sono sta stata state stati stato su sua sue sugli sui sul sulla sulle
        sullo suo suoi te ti tra tu tua tue tuo tutti tutto un una uno vi voi vostra vostro
    """,
    "norwegian": """
        alle at av bare begge ble blei bli blir da de deg dei deim den denne der dere deres det dette di din disse du
        då eg ein eit eller en er et etter for fordi fra før ha hadde han hans har hennar henne hennes her ho hos hun
        hva hvem hver hvilken hvis hvor hvordan hvorfor ikke ikkje inn ingen jeg kan kom kunne man mange med meg men
        mer mi min mitt mot mye ned no noe noen nå når og også om opp oss over på sammen seg selv si sia sin sine sitt
        skal skulle slik som så til um under upp ut uten var vart ved vere vi vil ville vore være vært å
    """,
    "portuguese": """
        ainda ao aos aquela aquelas aquele aqueles aquilo as até cada com como da das de dela delas dele deles depois
        do dos ela elas ele eles em entre era eram essa essas esse esses esta está estão estas estava estavam este
        estes eu foi for foram fosse haja há isso isto já lhe lhes mais mas me mesmo meu meus minha minhas muito na nas
        não nem no nos nós nossa nossas nosso nossos num numa os ou para pela pelas pelo pelos por porque qual quando
        que quem são se seja sejam sem sendo ser será serão seu seus só sob sobre sua suas também te tem têm tendo ter
        teu teve tinha tinham toda todas todo todos tu tua um uma umas uns você vocês
    """,
    "romanian": """
        acea aceasta această aceea acei aceia acel acela acele acelea acest acesta aceste acestea acestei acestor
        acestui aceşti aceștia ai aia al ale alea alt alta alte altele alţi alții am ar are as asta astfel aş aș au
        avea avem aveţi aveți că căci când care cărei căror cărui către ce cel cele cei cine cu cum da dacă dar de deci
        decât deoarece deşi deși din dintre după ea ei el ele era este eu fără fi fie fiecare fii fiind fost iar îi îl
        îmi împotriva în înainte încât încă între îşi își la le lor lui mai mea mei mele meu mi mult multe mulţi mulți
        ne nici nişte niște noi noastre nostru nu ori orice pe pentru peste pînă până prin sa să săi sale sau său se și
        şi sînt sub sunt sunteţi sunteți suntem te toate tot toţi toți tu un una unde unei unele unor unui va voi vor
        voastre vostru vouă
    """,
    "russian": """
        без более больше будет будто бы был была были было быть вам вас ведь во вот все всего всех всё вы где да даже
        для до его ее её если есть еще ещё же за здесь из или им иногда их как какая какой когда который которая
        которые которых кто ли между меня мне много может можно мой моя мы на над надо наш не него нее неё ней
        нельзя нет ни нибудь никогда ним них ничего но ну об один он она они оно опять от перед по под после потом
        потому почти при про раз разве сам свою себе себя сейчас со совсем так также такой там тебя тем теперь то тогда
        того тоже той только том тот тут ты уж уже хоть чего чей чем через что чтоб чтобы чуть эти этих этого
        этой этом этот эту это
    """,
    "spanish": """
        al algo algún alguna algunas alguno algunos ante antes aquel aquella aquellas aquellos aquello así aunque cada
        como con contra cual cuales cualquier cuando cuya cuyo de del desde donde durante el él ella ellas ello
        ellos en entre era eran eres es esa esas ese eso esos esta está están estaba estaban estar estas este esto
        estos estoy fue fueron fuera ha había habían haber habrá han has hasta hay la las le les lo los más me mi mí
        mis mismo misma mucha mucho muchos muy nada ni no nos nosotros nuestra nuestras nuestro nuestros otra otras
        otro otros para pero poco por porque pues que qué quien quienes se sea sean según ser será serán si sí sido
        siempre sin sino sobre sólo solo somos son soy su sus suya suyo también tanto te tenía tiene tienen todo todos
        toda todas tu tú tus un una unas uno unos vosotros vuestra vuestro ya yo
    """,
    "swedish": """
        alla allt att av blev bli blir blivit de dem den denna deras dess dessa det detta dig din dina ditt du då där
        efter ej eller en er era ert ett från för ha hade han hans har henne hennes här hon honom hur icke ingen inom
        inte jag ju kan kunde man med mellan men mig min mina mitt mot mycket ni nu när någon något några och om oss på
        samma sedan ska skall skulle sig sin sina sitt själv som så sådan till under upp ut utan vad var vara varför
        varit varje vars vart vem vi vid vilka vilken vilket vår våra vårt över åt är
    """,
    "turkish": """
        acaba ama ancak artık asla aslında az bana bazen bazı bazıları belki ben benden beni benim bile bir
        birçok biri birkaç birşey biz bizden bize bizi bizim böyle böylece bu buna bunda bundan bunlar bunları bunların
        bunu bunun burada bütün çoğu çok çünkü da daha dahi de defa değil diğer diye dolayı en fakat gibi göre
        hala hangi hatta hem henüz hep hepsi her herhangi herkes hiç hiçbir için ile ilgili ise işte kadar karşın kendi
        kendine kendini kez ki kim kime kimi kimse madem mi mı mu mü nasıl ne neden nedenle nerede nereye niye niçin o
        olan olarak oldu olduğu olduğunu olması olmak olsa olur ona ondan onlar onlardan onları onların onu onun orada
        oysa öyle pek rağmen sadece sanki şayet şekilde şey siz sizden size sizi sizin sonra şöyle şu şuna şunu tüm
        üzere var ve veya ya yani yerine yine yoksa zaten
    """,
}


def stop_words_of(language: str) -> tuple[str, ...]:
    """Return the words of a language that say nothing about a subject, sorted.

    >>> stop_words_of("danish")[:4]
    ('af', 'alle', 'at', 'blev')
    """
    return tuple(sorted(set(_LISTS[language].split())))
